package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"

	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/backendtest"
	"github.com/adkmemory/adkmemory/backends/gormstore"
	"github.com/adkmemory/adkmemory/backends/gormstore/gormtest"
	"github.com/adkmemory/adkmemory/backends/sqlite"
)

func child(ctx context.Context, path string, migrating bool, after func()) (backends.Store, error) {
	if migrating {
		db, _, err := ownDB(path)
		if err != nil {
			return nil, err
		}
		if err := gormtest.After(db, func(*gorm.DB) { after() }); err != nil {
			return nil, err
		}
		return gormstore.New(ctx, db, gormstore.Config{})
	}
	store, err := sqlite.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	return store, gormtest.After(store.DB(), func(*gorm.DB) { after() })
}

func TestProcesses(t *testing.T) {
	t.Parallel()
	backendtest.RunProcesses(t,
		func(t testing.TB) string { return filepath.Join(t.TempDir(), "memory.db") },
		func(t testing.TB, path string) backends.Store { return openFile(t, path) })
}
