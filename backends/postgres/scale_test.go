package postgres_test

import (
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/adkmemory/adkmemory/backends/gormstore/gormtest"
	"github.com/adkmemory/adkmemory/backends/pgtest"
)

// scale is the number of sessions, of ten notes each, that the tests fill a database with. docs/scaling.md has what
// was measured with 100,000.
func scale(t testing.TB) int {
	const env = "ADKMEMORY_TEST_SCALE"
	value := os.Getenv(env)
	if value == "" {
		return 10_000
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 10_000 {
		t.Fatalf("%s is %q: it is a number of sessions, 10000 or more", env, value)
	}
	return n
}

func TestPlans(t *testing.T) {
	t.Parallel()
	store, n := open(t, pgtest.DSN(t)), scale(t)
	begin := time.Now()
	gormtest.Fill(t, store.DB(), n, 10)
	var size string
	if err := store.DB().Raw(`SELECT string_agg(relname || ' ' || pg_size_pretty(pg_total_relation_size(oid)), ', ')
		FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace`).Scan(&size).Error; err != nil {
		t.Fatal(err)
	}
	t.Logf("filled %d sessions with %d notes in %v: %s", n, 10*n, time.Since(begin), size)
	for name, work := range map[string]func(){
		"turn":   func() { gormtest.Turn(t, store, gormtest.Filled(500)) },
		"upkeep": func() { gormtest.Upkeep(t, store, gormtest.Filled(600)) },
	} {
		t.Run("OPS-2 no statement of a "+name+" reads a table from end to end", func(t *testing.T) {
			for _, s := range gormtest.Scans(t, store.DB(), work) {
				t.Error(s)
			}
		})
	}
	const turns = 500
	begin = time.Now()
	for i := range turns {
		gormtest.Turn(t, store, gormtest.Filled(1000+i))
	}
	t.Logf("a turn's calls take %v with %d sessions", time.Since(begin)/turns, n)
}

// BenchmarkTurns plays turns of many sessions side by side.
func BenchmarkTurns(b *testing.B) {
	store, n := open(b, pgtest.DSN(b)), scale(b)
	gormtest.Fill(b, store.DB(), n, 10)
	var next atomic.Int64
	b.SetParallelism(4)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			gormtest.Turn(b, store, gormtest.Filled(int(next.Add(1))%n))
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
}
