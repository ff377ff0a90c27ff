package postgres_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/backendtest"
	"github.com/adkmemory/adkmemory/backends/gormstore"
	"github.com/adkmemory/adkmemory/backends/gormstore/gormtest"
	"github.com/adkmemory/adkmemory/backends/pgtest"
	"github.com/adkmemory/adkmemory/backends/postgres"
)

func TestMain(m *testing.M) {
	backendtest.ChildMain(child)
	code := pgtest.Main(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func open(t testing.TB, dsn string) *postgres.Store {
	store, err := postgres.Open(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func harness(t testing.TB) backendtest.Harness {
	dsn := pgtest.DSN(t)
	store := open(t, dsn)
	return backendtest.Harness{
		Store:   store,
		Age:     func(d time.Duration) { gormtest.Age(t, store.DB(), d) },
		Rows:    func(app, user string) map[string]int { return gormtest.Rows(t, store.DB(), app, user) },
		Another: func() backends.Store { return open(t, dsn) },
	}
}

func TestStore(t *testing.T) { backendtest.Run(t, harness) }

func BenchmarkStore(b *testing.B) { backendtest.Bench(b, harness) }

// ownDB opens the database as an application would that knows nothing of this module, with an
// isolation level that the store does not expect.
func ownDB(dsn string) (*gorm.DB, error) {
	return gorm.Open(gormpostgres.Open(pgtest.With(dsn, "default_transaction_isolation", "serializable")), &gorm.Config{})
}

func TestOwnDatabase(t *testing.T) {
	t.Parallel()
	backendtest.Run(t, func(t testing.TB) backendtest.Harness {
		db, err := ownDB(pgtest.DSN(t))
		if err != nil {
			t.Fatal(err)
		}
		pool, err := db.DB()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = pool.Close() })
		store, err := gormstore.New(context.Background(), db, gormstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return backendtest.Harness{Store: store, Age: func(d time.Duration) { gormtest.Age(t, store.DB(), d) }}
	})
}

func child(ctx context.Context, dsn string, migrating bool, after func()) (backends.Store, error) {
	if migrating {
		db, err := ownDB(dsn)
		if err != nil {
			return nil, err
		}
		if err := gormtest.After(db, func(*gorm.DB) { after() }); err != nil {
			return nil, err
		}
		return gormstore.New(ctx, db, gormstore.Config{})
	}
	store, err := postgres.Open(ctx, dsn)
	if err != nil {
		return nil, err
	}
	return store, gormtest.After(store.DB(), func(*gorm.DB) { after() })
}

func TestProcesses(t *testing.T) {
	t.Parallel()
	backendtest.RunProcesses(t, pgtest.DSN, func(t testing.TB, dsn string) backends.Store { return open(t, dsn) })
}

func TestOpen(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]string{
		"no DSN":    "::",
		"no server": "host=/nonexistent user=postgres sslmode=disable",
		"bad pool":  "host=/nonexistent pool_max_conns=none",
	} {
		if store, err := postgres.Open(context.Background(), dsn); err == nil {
			t.Errorf("%s: %v", name, store)
		}
	}
}

func TestBehindPooler(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"exec", "simple_protocol", "describe_exec"} {
		t.Run("OPS-2 the store needs no prepared statements: "+mode, func(t *testing.T) {
			t.Parallel()
			store := open(t, pgtest.With(pgtest.DSN(t), "default_query_exec_mode", mode))
			key := backends.SessionKey{App: "app", User: "user", Session: "s"}
			for range 3 {
				gormtest.Turn(t, store, key)
			}
			gormtest.Upkeep(t, store, key)
		})
	}
}

func ExampleOpen() {
	ctx := context.Background()
	store, err := postgres.Open(ctx, "postgres://user:password@db.example.com/agents?sslmode=verify-full&pool_max_conns=16")
	if err != nil {
		return // the database is not there
	}
	defer func() { _ = store.Close() }()
}
