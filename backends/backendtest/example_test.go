package backendtest_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/adkmemory/adkmemory/backends/backendtest"
	"github.com/adkmemory/adkmemory/backends/inmemory"
)

func ExampleRun() {
	// In a backend's own tests:
	_ = func(t *testing.T) {
		backendtest.Run(t, func(t testing.TB) backendtest.Harness {
			var offset atomic.Int64
			store := inmemory.NewWithClock(func() time.Time { return time.Now().Add(time.Duration(offset.Load())) })
			t.Cleanup(func() { _ = store.Close() })
			return backendtest.Harness{Store: store, Age: func(d time.Duration) { offset.Add(int64(d)) }}
		})
	}
}
