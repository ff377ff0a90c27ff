package gormstore

import (
	"context"
	"fmt"
	"sync/atomic"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/adkmemory/adkmemory/backends"
)

// Store implements [backends.Store] over GORM. It is safe for concurrent use by any number of goroutines and processes.
type Store struct {
	db      *gorm.DB // writes
	reader  *gorm.DB // reads
	dialect dialect
	closed  atomic.Bool
}

var _ backends.Store = (*Store)(nil)

// Config holds what [New] can be told.
type Config struct {
	// Reader is a handle for reads on the same database, such as a pool of read-only connections. Default: the handle
	// for writes. A replica that lags behind is not suitable: a load after a commit must see it.
	Reader *gorm.DB
}

// New returns a store over a database that the caller has opened, after bringing its tables up to date. The dialect is
// db.Dialector.Name(): "sqlite" or "postgres", anything else is [backends.ErrInvalid]. The caller's logger and default
// transactions are not used: statements hold message content, and every write has a transaction of its own.
//
// On SQLite, open the database with a busy timeout; one shared by processes should be in WAL mode.
//
// The caller keeps db and closes it after the store.
func New(ctx context.Context, db *gorm.DB, cfg Config) (*Store, error) {
	if cfg.Reader == nil {
		cfg.Reader = db
	}
	d, err := dialectOf(db)
	if err != nil {
		return nil, err
	}
	s := &Store{db: quiet(db), reader: quiet(cfg.Reader), dialect: d}
	if err := Migrate(ctx, s.db, "store", schema(d)); err != nil {
		return nil, err
	}
	return s, nil
}

// quiet returns a handle that logs nothing and opens no transactions by itself.
func quiet(db *gorm.DB) *gorm.DB {
	return db.Session(&gorm.Session{NewDB: true, SkipDefaultTransaction: true, Logger: logger.Discard})
}

// DB returns the handle for writes, for components that keep their own tables in the same database. On SQLite it has a
// single connection: a transaction on it must not wait for another one.
func (s *Store) DB() *gorm.DB { return s.db }

// Reader returns the handle for reads. It may refuse writes.
func (s *Store) Reader() *gorm.DB { return s.reader }

// Close makes every later call fail with [backends.ErrClosed]. The database stays open: it belongs to the caller of
// [New].
func (s *Store) Close() error {
	s.closed.Store(true)
	return nil
}

// begin checks what every method checks before it touches the database.
func (s *Store) begin(ctx context.Context, op string, faults ...error) error {
	for _, err := range faults {
		if err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
	}
	if s.closed.Load() {
		return fmt.Errorf("%s: %w", op, backends.ErrClosed)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}

// write runs fn in one transaction. The first statement of fn must be a write, so that SQLite takes its write lock
// before anything is read, whatever mode the caller's connections begin in.
func (s *Store) write(ctx context.Context, op string, fn func(tx *gorm.DB) error) error {
	return s.fail(ctx, op, s.db.WithContext(ctx).Transaction(fn, s.dialect.write))
}
