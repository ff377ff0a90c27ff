package inmemory_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/backendtest"
	"github.com/adkmemory/adkmemory/backends/inmemory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB) backendtest.Harness {
	var offset atomic.Int64
	store := inmemory.NewWithClock(func() time.Time { return time.Now().Add(time.Duration(offset.Load())) })
	t.Cleanup(func() { _ = store.Close() })
	return backendtest.Harness{Store: store, Age: func(d time.Duration) { offset.Add(int64(d)) }}
}

func TestStore(t *testing.T) { backendtest.Run(t, open) }

func BenchmarkStore(b *testing.B) { backendtest.Bench(b, open) }

func Example() {
	store := inmemory.New()
	ctx, key := context.Background(), backends.SessionKey{App: "shop", User: "ada", Session: "1"}
	commit := backends.Commit{
		To:          backends.Cursor{MessageID: "m2", Index: 1},
		Observation: backends.Observation{Note: backends.Note{ID: "o1", Text: "Ada wants the blue one."}},
	}
	_, err := store.Commit(ctx, key, commit)
	fmt.Println("first:", err)
	_, err = store.Commit(ctx, key, commit)
	fmt.Println("again:", err)
	// Output:
	// first: <nil>
	// again: adkmemory: session changed since it was loaded
}
