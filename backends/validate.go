package backends

import (
	"errors"
	"fmt"
	"time"
)

// PageLimit is the number of items a store returns for a limit that a caller named: [DefaultListItems] for 0,
// [ErrInvalid] for less, [ErrTooLarge] for more than [MaxListItems].
func PageLimit(limit int) (int, error) {
	switch {
	case limit < 0:
		return 0, fmt.Errorf("%w: the limit is %d", ErrInvalid, limit)
	case limit > MaxListItems:
		return 0, fmt.Errorf("%w: the limit is %d, at most %d items are returned at once", ErrTooLarge, limit, MaxListItems)
	case limit == 0:
		return DefaultListItems, nil
	}
	return limit, nil
}

// Validate reports every fault of a query for sessions. The error wraps [ErrInvalid] or [ErrTooLarge].
func (q SessionQuery) Validate() error {
	errs := []error{validID("app", q.App, true), validID("user", q.User, false), validID("contains", q.Contains, false)}
	if q.Offset < 0 {
		errs = append(errs, fmt.Errorf("%w: the offset is %d", ErrInvalid, q.Offset))
	}
	_, err := PageLimit(q.Limit)
	return errors.Join(append(errs, err)...)
}

// ValidateRebase reports what [Committer.RebaseCursor] refuses, an empty cursor included. The error wraps [ErrInvalid].
func ValidateRebase(epoch string, stream Stream, from Cursor) error {
	return errors.Join(validID("epoch", epoch, false), stream.Validate(), validID("cursor's message id", from.MessageID, true))
}

// ValidateLease reports an owner that is no valid identifier and a time to live that is not positive. The error wraps
// [ErrInvalid].
func ValidateLease(owner string, ttl time.Duration) error {
	err := ValidateID("owner", owner)
	if ttl <= 0 {
		err = errors.Join(err, fmt.Errorf("%w: the lease's time to live is not positive", ErrInvalid))
	}
	return err
}

// Validate reports every fault of a query for notes. The error wraps [ErrInvalid] or [ErrTooLarge].
func (q NoteQuery) Validate() error {
	_, err := PageLimit(q.Limit)
	if n := len(q.IDs); n > MaxListItems {
		return errors.Join(err, fmt.Errorf("%w: %d note ids, at most %d are allowed", ErrTooLarge, n, MaxListItems))
	}
	errs := []error{err}
	for _, id := range q.IDs {
		errs = append(errs, ValidateID("note id", id))
	}
	return errors.Join(errs...)
}

// Validate reports every fault of a query for messages. The error wraps [ErrInvalid] or [ErrTooLarge].
func (q MessageQuery) Validate() error {
	_, err := PageLimit(q.Limit)
	return errors.Join(err, validID("observation id", q.ObservationID, false))
}
