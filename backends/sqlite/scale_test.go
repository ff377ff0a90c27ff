package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/adkmemory/adkmemory/backends/gormstore/gormtest"
)

func TestPlans(t *testing.T) {
	t.Parallel()
	store := openFile(t, filepath.Join(t.TempDir(), "memory.db"))
	gormtest.Fill(t, store.DB(), 1000, 10)
	for name, work := range map[string]func(){
		"turn":   func() { gormtest.Turn(t, store, gormtest.Filled(500)) },
		"upkeep": func() { gormtest.Upkeep(t, store, gormtest.Filled(600)) },
	} {
		t.Run("OPS-2 no statement of a "+name+" reads a table from end to end", func(t *testing.T) {
			var reads []string
			writes := gormtest.Scans(t, store.DB(), func() { reads = gormtest.Scans(t, store.Reader(), work) })
			for _, s := range append(reads, writes...) {
				t.Error(s)
			}
		})
	}
}

// BenchmarkTurn plays one turn after the other, each of another session.
func BenchmarkTurn(b *testing.B) {
	store := openFile(b, filepath.Join(b.TempDir(), "memory.db"))
	const sessions = 10_000
	gormtest.Fill(b, store.DB(), sessions, 10)
	i := 0
	for b.Loop() {
		gormtest.Turn(b, store, gormtest.Filled(i%sessions))
		i++
	}
}
