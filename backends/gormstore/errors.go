package gormstore

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
)

// fail turns what the database said into an error of the contract. It names the operation and never a value.
func (s *Store) fail(ctx context.Context, op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, backends.ErrConflict), errors.Is(err, backends.ErrInvalid):
	case ctx.Err() != nil:
		err = ctx.Err()
	case s.closed.Load():
		err = backends.ErrClosed
	case isDuplicate(s.db, err), isSerialization(err):
		err = backends.ErrConflict
	}
	return fmt.Errorf("%s: %w", op, err)
}

// isDuplicate reports a violated unique key. It asks the error for its code rather than the driver for its type, so
// that no driver is imported here and any driver of the caller's will do.
func isDuplicate(db *gorm.DB, err error) bool {
	var sqlite interface{ Code() int }
	if errors.As(err, &sqlite) {
		code := sqlite.Code()
		return code == 1555 || code == 2067 // SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_UNIQUE
	}
	if state := sqlState(err); state != "" {
		return state == "23505" // unique_violation
	}
	if translator, ok := db.Dialector.(gorm.ErrorTranslator); ok {
		err = translator.Translate(err)
	}
	return errors.Is(err, gorm.ErrDuplicatedKey)
}

// isSerialization reports that Postgres gave up on this transaction in favour of a concurrent one.
func isSerialization(err error) bool {
	state := sqlState(err)
	return state == "40001" || state == "40P01" // serialization_failure, deadlock_detected
}

func sqlState(err error) string {
	var postgres interface{ SQLState() string }
	if errors.As(err, &postgres) {
		return postgres.SQLState()
	}
	return ""
}
