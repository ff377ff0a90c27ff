// Package sqlite keeps memory in a SQLite file, with a driver in pure Go. [Open] is all there is to it; any number of
// processes may open one file.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	driver "modernc.org/sqlite"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/gormstore"
)

// readers is the number of connections that read beside the one that writes.
const readers = 4

// Store is a [gormstore.Store] that owns its database.
type Store struct {
	*gormstore.Store
	pools []*sql.DB
}

var _ backends.Store = (*Store)(nil)

// Open opens the file at path, creates it when it is not there, and brings its tables up to date. The path is a plain
// one, not a URI. ":memory:" is a database that ends with the store and has a single connection for reads and writes.
//
// The file is in WAL mode with synchronous NORMAL: a crash of the process loses nothing, a power failure at most the
// last commits, and never half of one. One connection writes and four read beside it; a write waits up to five seconds
// for another process's, or as long as its context allows; a read waits for nobody.
func Open(ctx context.Context, path string) (*Store, error) {
	if path == "" || strings.ContainsRune(path, 0) {
		return nil, fmt.Errorf("adkmemory: open sqlite: %w: the path is empty or holds a NUL byte", backends.ErrInvalid)
	}
	s := &Store{}
	if err := s.open(ctx, path); err != nil {
		return nil, errors.Join(fmt.Errorf("adkmemory: open sqlite: %w", err), s.closePools())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, path string) error {
	common := fmt.Sprintf("_busy_timeout=%d&_foreign_keys=on&_synchronous=NORMAL", busyTimeout.Milliseconds())
	writer, err := s.pool(ctx, path, common+"&_txlock=immediate", 1)
	if err != nil {
		return err
	}
	cfg := gormstore.Config{Reader: writer}
	if path != ":memory:" {
		if err := useWAL(ctx, writer); err != nil {
			return err
		}
		if cfg.Reader, err = s.pool(ctx, path, common+"&_query_only=on", readers); err != nil {
			return err
		}
	}
	s.Store, err = gormstore.New(ctx, writer, cfg)
	return err
}

// pool opens up to n connections.
func (s *Store) pool(ctx context.Context, path, params string, n int) (*gorm.DB, error) {
	if path != ":memory:" {
		path = "file:" + (&url.URL{Path: path}).EscapedPath()
	}
	connector, err := driver.NewConnector(path + "?" + params)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(patient{connector})
	s.pools = append(s.pools, db)
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	if err := db.PingContext(ctx); err != nil {
		return nil, err
	}
	return gorm.Open(&dialector{&gormsqlite.Dialector{Conn: db}}, &gorm.Config{
		SkipDefaultTransaction: true, TranslateError: true, Logger: logger.Discard,
	})
}

// useWAL turns WAL mode on, which the file remembers. SQLite does not wait for a lock here when several processes do it
// at once, so it is tried again for as long as a write would wait.
func useWAL(ctx context.Context, db *gorm.DB) error {
	ctx, cancel := context.WithTimeout(ctx, busyTimeout)
	defer cancel()
	for {
		var mode string
		err := db.WithContext(ctx).Raw("PRAGMA journal_mode = WAL").Scan(&mode).Error
		if err == nil && mode == "wal" {
			return nil
		}
		if err == nil {
			return fmt.Errorf("the file stays in journal mode %q, WAL is not available there", mode)
		}
		if !isBusy(err) {
			return err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// Close implements [backends.Store].
func (s *Store) Close() error {
	return errors.Join(s.Store.Close(), s.closePools())
}

func (s *Store) closePools() error {
	var err error
	for _, pool := range s.pools {
		err = errors.Join(err, pool.Close())
	}
	return err
}
