package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"
	driver "modernc.org/sqlite"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/backendtest"
	"github.com/adkmemory/adkmemory/backends/gormstore"
	"github.com/adkmemory/adkmemory/backends/gormstore/gormtest"
	"github.com/adkmemory/adkmemory/backends/sqlite"
)

// ownDB opens a file as an application would that knows nothing of this module: GORM's defaults, deferred transactions,
// many connections, no translation of errors.
func ownDB(path string) (*gorm.DB, *sql.DB, error) {
	connector, err := driver.NewConnector(path + "?_busy_timeout=10000&_journal_mode=WAL")
	if err != nil {
		return nil, nil, err
	}
	pool := sql.OpenDB(connector)
	db, err := gorm.Open(&gormsqlite.Dialector{Conn: pool}, &gorm.Config{})
	return db, pool, err
}

func own(t testing.TB, path string) *gormstore.Store {
	db, pool, err := ownDB(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	store, err := gormstore.New(context.Background(), db, gormstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestOwnDatabase(t *testing.T) {
	t.Parallel()
	backendtest.Run(t, func(t testing.TB) backendtest.Harness {
		path := filepath.Join(t.TempDir(), "app.db")
		store := own(t, path)
		return backendtest.Harness{
			Store:   store,
			Age:     func(d time.Duration) { gormtest.Age(t, store.DB(), d) },
			Another: func() backends.Store { return own(t, path) },
		}
	})
}

func TestOpen(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	t.Run("a path may hold what a URI may not", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "a %41?mode=memory#b c.db")
		for range 2 {
			store := openFile(t, path)
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if found, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*.db")); len(found) != 1 || found[0] != path {
			t.Errorf("files are %q", found)
		}
	})
	t.Run("a path that cannot be opened is an error and leaves nothing open", func(t *testing.T) {
		t.Parallel()
		for _, path := range []string{"", "a\x00b", t.TempDir(), filepath.Join(t.TempDir(), "missing", "memory.db")} {
			if store, err := sqlite.Open(ctx, path); err == nil {
				t.Errorf("Open(%q) = %v", path, store)
			}
		}
	})
	t.Run("a cancelled context stops it", func(t *testing.T) {
		t.Parallel()
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := sqlite.Open(cancelled, filepath.Join(t.TempDir(), "memory.db")); err == nil {
			t.Error("Open succeeded")
		}
	})
	t.Run("readers cannot write", func(t *testing.T) {
		t.Parallel()
		store := openFile(t, filepath.Join(t.TempDir(), "memory.db"))
		if err := store.Reader().Exec("DELETE FROM adkmemory_notes").Error; err == nil {
			t.Error("a reader wrote")
		}
	})
	t.Run("the settings are those that the package promises", func(t *testing.T) {
		t.Parallel()
		store := openFile(t, filepath.Join(t.TempDir(), "memory.db"))
		for _, db := range []*gorm.DB{store.DB(), store.Reader()} {
			for pragma, want := range map[string]string{
				"journal_mode": "wal", "synchronous": "1", "foreign_keys": "1", "busy_timeout": "5000",
			} {
				var got string
				if err := db.Raw("PRAGMA " + pragma).Scan(&got).Error; err != nil || got != want {
					t.Errorf("%s = %s, %v", pragma, got, err)
				}
			}
		}
	})
}

// BenchmarkOpen opens a file that is up to date.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "memory.db")
	_ = openFile(b, path).Close()
	for b.Loop() {
		store, err := sqlite.Open(context.Background(), path)
		if err != nil {
			b.Fatal(err)
		}
		_ = store.Close()
	}
}
