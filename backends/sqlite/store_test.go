package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/backendtest"
	"github.com/adkmemory/adkmemory/backends/gormstore/gormtest"
	"github.com/adkmemory/adkmemory/backends/sqlite"
)

func TestMain(m *testing.M) {
	backendtest.ChildMain(child)
	goleak.VerifyTestMain(m)
}

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
		Age:   func(d time.Duration) { gormtest.Age(t, store.DB(), d) },
		Rows:  func(app, user string) map[string]int { return gormtest.Rows(t, store.DB(), app, user) },
	}
	if path != ":memory:" {
		h.Another = func() backends.Store { return openFile(t, path) }
	}
	return h
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
