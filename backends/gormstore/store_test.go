package gormstore_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"gorm.io/gorm"
	"gorm.io/gorm/utils/tests"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/gormstore"
	"github.com/adkmemory/adkmemory/backends/gormstore/gormtest"
	"github.com/adkmemory/adkmemory/backends/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB) *sqlite.Store {
	store, err := sqlite.Open(context.Background(), filepath.Join(t.TempDir(), "memory.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// count returns the number of statements that a handle runs while fn does.
func count(t *testing.T, db *gorm.DB, fn func()) int {
	t.Helper()
	n := 0
	if err := gormtest.After(db, func(*gorm.DB) { n++ }); err != nil {
		t.Fatal(err)
	}
	fn()
	return n
}

func TestQueries(t *testing.T) {
	t.Parallel()
	ctx, key := context.Background(), backends.SessionKey{App: "app", User: "user", Session: "s"}
	t.Run("a load of what has not changed is one query", func(t *testing.T) {
		t.Parallel()
		store := open(t)
		if err := store.DeleteSession(ctx, key); err != nil {
			t.Fatal(err)
		}
		snap, err := store.Load(ctx, key, backends.Stamp{})
		if err != nil {
			t.Fatal(err)
		}
		n := count(t, store.Reader(), func() {
			if again, err := store.Load(ctx, key, snap.Stamp); err != nil || again != nil {
				t.Errorf("Load = %v, %v", again, err)
			}
		})
		if n != 1 {
			t.Errorf("it is %d", n)
		}
	})
	t.Run("migrations that have run are one query", func(t *testing.T) {
		t.Parallel()
		store := open(t)
		n := count(t, store.DB(), func() {
			if _, err := gormstore.New(ctx, store.DB(), gormstore.Config{}); err != nil {
				t.Error(err)
			}
		})
		if n != 1 {
			t.Errorf("they are %d", n)
		}
	})
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	one := gormstore.SQL("1", "CREATE TABLE one (id BIGINT)")
	two := gormstore.SQL("2", "CREATE TABLE two (id BIGINT)")
	broken := gormstore.SQL("3", "CREATE TABLE three (id BIGINT)", "nonsense")
	tables := func(t *testing.T, db *gorm.DB) []string {
		t.Helper()
		var names []string
		err := db.Raw("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'adkmemory%' ORDER BY name").Scan(&names).Error
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	t.Run("every migration runs once, in order, and later ones are added", func(t *testing.T) {
		t.Parallel()
		db := open(t).DB()
		for _, list := range [][]gormstore.Migration{{one}, {one}, {one, two}, {one, two}, {one}} {
			if err := gormstore.Migrate(ctx, db, "test", list); err != nil {
				t.Fatal(err)
			}
		}
		if got := tables(t, db); !slices.Equal(got, []string{"one", "two"}) {
			t.Errorf("tables are %v", got)
		}
	})
	t.Run("components do not know of each other", func(t *testing.T) {
		t.Parallel()
		db := open(t).DB()
		other := gormstore.SQL("1", "CREATE TABLE other (id BIGINT)")
		if err := errors.Join(gormstore.Migrate(ctx, db, "a", []gormstore.Migration{one}),
			gormstore.Migrate(ctx, db, "b", []gormstore.Migration{other})); err != nil {
			t.Fatal(err)
		}
		if got := tables(t, db); !slices.Equal(got, []string{"one", "other"}) {
			t.Errorf("tables are %v", got)
		}
	})
	t.Run("one that fails leaves nothing of any", func(t *testing.T) {
		t.Parallel()
		db := open(t).DB()
		if err := gormstore.Migrate(ctx, db, "test", []gormstore.Migration{one, two, broken}); err == nil {
			t.Fatal("there is no error")
		}
		if got := tables(t, db); len(got) > 0 {
			t.Errorf("tables are %v", got)
		}
		if err := gormstore.Migrate(ctx, db, "test", []gormstore.Migration{one, two}); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("another database than the two is refused", func(t *testing.T) {
		t.Parallel()
		db, err := gorm.Open(tests.DummyDialector{}, &gorm.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := gormstore.New(ctx, db, gormstore.Config{}); !errors.Is(err, backends.ErrInvalid) {
			t.Errorf("error is %v", err)
		}
		if err := gormstore.Migrate(ctx, db, "test", nil); !errors.Is(err, backends.ErrInvalid) {
			t.Errorf("error is %v", err)
		}
	})
}
