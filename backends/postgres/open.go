// Package postgres keeps memory in Postgres, for any number of processes that share one database. [Open] is all there
// is to it.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/gormstore"
)

// Store is a [gormstore.Store] that owns its connections.
type Store struct {
	*gormstore.Store
	pool *pgxpool.Pool
	db   *sql.DB
}

var _ backends.Store = (*Store)(nil)

// Open connects to the database that dsn names and brings the tables in its current schema up to date. Processes that
// open one database at once migrate it once.
//
// The DSN is a URL or a list of key=value as pgx reads it, with the PG… environment variables as defaults: TLS is set by
// sslmode, sslrootcert and so on, the schema by search_path. The pool is set there too, with pgxpool's defaults:
//
//	pool_max_conns           the larger of 4 and the number of CPUs; a turn holds one connection for a millisecond or two
//	pool_min_conns           0
//	pool_max_conn_lifetime   1h
//	pool_max_conn_idle_time  30m
//
// Behind a pooler that hands out connections per transaction, add default_query_exec_mode=exec: the store needs nothing
// that outlives a transaction, prepared statements would.
func Open(ctx context.Context, dsn string) (*Store, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("adkmemory: open postgres: %w: %w", backends.ErrInvalid, err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("adkmemory: open postgres: %w", err)
	}
	s := &Store{pool: pool, db: stdlib.OpenDBFromPool(pool)}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("adkmemory: open postgres: %w", err), s.closePool())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	if err := s.db.PingContext(ctx); err != nil {
		return err
	}
	db, err := gorm.Open(gormpostgres.New(gormpostgres.Config{Conn: s.db}), &gorm.Config{
		SkipDefaultTransaction: true, TranslateError: true, Logger: logger.Discard,
	})
	if err != nil {
		return err
	}
	s.Store, err = gormstore.New(ctx, db, gormstore.Config{})
	return err
}

// Close implements [backends.Store]. It waits for calls that are in progress.
func (s *Store) Close() error {
	return errors.Join(s.Store.Close(), s.closePool())
}

func (s *Store) closePool() error {
	err := s.db.Close()
	s.pool.Close()
	return err
}
