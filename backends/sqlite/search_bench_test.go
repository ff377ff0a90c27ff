package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/adkmemory/adkmemory/backends/backendtest"
)

func BenchmarkSearch(b *testing.B) {
	open := func(t testing.TB) backendtest.Harness { return harness(t, filepath.Join(t.TempDir(), "memory.db")) }
	b.Run("Large", func(b *testing.B) { backendtest.BenchSearch(b, open, 100_000, 0) })
	b.Run("Neighbours", func(b *testing.B) { backendtest.BenchSearch(b, open, 1_000, 100_000) })
}
