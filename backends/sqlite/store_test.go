package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/backendtest"
	"github.com/adkmemory/adkmemory/backends/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openFile(t testing.TB, path string) *sqlite.Store {
	store, err := sqlite.Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func harness(t testing.TB, path string) backendtest.Harness {
	store := openFile(t, path)
	h := backendtest.Harness{
		Store: store,
		Age:   func(d time.Duration) { age(t, store, d) },
		Rows:  func(app, user string) map[string]int { return rows(t, store, app, user) },
	}
	if path != ":memory:" {
		h.Another = func() backends.Store { return openFile(t, path) }
	}
	return h
}

// age makes everything that the store dated look older.
func age(t testing.TB, store *sqlite.Store, d time.Duration) {
	for _, statement := range []string{
		"UPDATE adkmemory_sessions SET updated_at = updated_at - ?",
		"UPDATE adkmemory_sessions SET deleted_at = deleted_at - ? WHERE deleted_at > 0",
		"UPDATE adkmemory_leases SET expires_at = expires_at - ?",
	} {
		if err := store.DB().Exec(statement, d.Microseconds()).Error; err != nil {
			t.Fatal(err)
		}
	}
}

// rows counts what every table with the columns app and user_id holds, but for tombstones.
func rows(t testing.TB, store *sqlite.Store, app, user string) map[string]int {
	var tables []string
	err := store.DB().Raw(`SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c ON c.name = 'user_id'
		WHERE m.type = 'table'`).Scan(&tables).Error
	if err != nil || len(tables) < 5 {
		t.Fatal(tables, err)
	}
	counts := map[string]int{}
	for _, table := range tables {
		where := " WHERE app = ? AND (user_id = ? OR ? = '')"
		if table == "adkmemory_sessions" {
			where += " AND deleted_at = 0"
		}
		var n int
		if err := store.DB().Raw("SELECT count(*) FROM "+table+where, app, user, user).Scan(&n).Error; err != nil {
			t.Fatal(err)
		}
		counts[table] = n
	}
	return counts
}

func TestFile(t *testing.T) {
	t.Parallel()
	backendtest.Run(t, func(t testing.TB) backendtest.Harness {
		return harness(t, filepath.Join(t.TempDir(), "memory.db"))
	})
}

func TestMemory(t *testing.T) {
	t.Parallel()
	backendtest.Run(t, func(t testing.TB) backendtest.Harness { return harness(t, ":memory:") })
}

func BenchmarkStore(b *testing.B) {
	backendtest.Bench(b, func(t testing.TB) backendtest.Harness {
		return harness(t, filepath.Join(t.TempDir(), "memory.db"))
	})
}
