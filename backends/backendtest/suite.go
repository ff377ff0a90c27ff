// Package backendtest is the suite that every [backends.Store] passes. A backend's own test calls [Run]; what the
// backend cannot do is said by the functions it leaves out of its [Harness].
package backendtest

import (
	"context"
	"testing"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

// Harness is one empty store and what a test may do to it from outside.
type Harness struct {
	// Store is the store to test. It is empty, and closed when its test has ended.
	Store backends.Store

	// Age makes everything that the store dated look older by d: writes, tombstones, leases.
	Age func(d time.Duration)

	// Another opens the same data once more, as another process would. Nil when the store lives in one process only.
	Another func() backends.Store

	// Rows counts the rows of every table that are about a user, or an app when user is empty, but for tombstones. Nil
	// when there are no tables.
	Rows func(app, user string) map[string]int
}

// Run tests a backend. It calls open for every test anew; the tests run in parallel.
func Run(t *testing.T, open func(t testing.TB) Harness) {
	for _, area := range []struct {
		name string
		run  func(*testing.T, func(testing.TB) Harness)
	}{
		{"Load", runLoad},
		{"Commit", runCommit},
		{"Condense", runCondense},
		{"List", runList},
		{"Archive", runArchive},
		{"Delete", runDelete},
		{"Lease", runLease},
		{"Tenancy", runTenancy},
		{"Limits", runLimits},
		{"Concurrency", runConcurrency},
		{"Search", runSearch},
		{"Knowledge", runKnowledge},
		{"Vectors", runVectors},
		{"LibraryTenancy", runLibraryTenancy},
	} {
		t.Run(area.name, func(t *testing.T) {
			t.Parallel()
			area.run(t, open)
		})
	}
}

// scenario is one test of an area.
type scenario struct {
	name string
	run  func(t *testing.T, h Harness)
}

func runAll(t *testing.T, open func(testing.TB) Harness, scenarios []scenario) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.run(t, open(t))
		})
	}
}

// ctx is the context of a call that nothing cancels.
func ctx() context.Context { return context.Background() }
