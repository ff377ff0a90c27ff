package postgres_test

import (
	"testing"

	"github.com/adkmemory/adkmemory/backends/backendtest"
)

func BenchmarkSearch(b *testing.B) {
	b.Run("Large", func(b *testing.B) { backendtest.BenchSearch(b, harness, 100_000, 0) })
	b.Run("Neighbours", func(b *testing.B) { backendtest.BenchSearch(b, harness, 1_000, 100_000) })
}
