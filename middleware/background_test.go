package middleware_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/observer"
)

func TestBackground(t *testing.T) {
	t.Parallel()

	t.Run("BUF-1 BUF-4 a blocked Observer never blocks a turn, and one session never has two in flight", func(t *testing.T) {
		t.Parallel()
		release := make(chan struct{})
		var inFlight, most atomic.Int32
		a := newApp(t, talker(), observedBy(observeFunc(func(ctx context.Context, req observer.Request) (observer.Note, error) {
			most.Store(max(most.Load(), inFlight.Add(1)))
			defer inFlight.Add(-1)
			<-release
			return brief(ctx, req)
		})))
		for i := range 40 { // far past the threshold, within the hard limit
			a.say(fact(i))
		}
		close(release)
		a.settle()
		if most.Load() != 1 {
			t.Errorf("%d observations of one session were in flight at once", most.Load())
		}
		if got := len(a.snapshot().Observations); got == 0 || got > 3 {
			t.Errorf("%d observations: forty triggers should have coalesced", got)
		}
	})

	t.Run("BUF-4 different sessions are observed in parallel", func(t *testing.T) {
		t.Parallel()
		var both sync.WaitGroup
		both.Add(2)
		a := newApp(t, talker(), observedBy(observeFunc(func(ctx context.Context, req observer.Request) (observer.Note, error) {
			both.Done()
			both.Wait() // goes on only when the other session's Observer is there as well
			return brief(ctx, req)
		})), with(func(c *appConfig) { c.cfg.MessageTokenThreshold = 50 }))
		a.say(fact(1))
		b := *a
		b.key.Session = "another"
		b.say(fact(2))
		a.settle()
		b.settle()
		if len(a.snapshot().Observations) != 1 || len(b.snapshot().Observations) != 1 {
			t.Error("a session was not observed")
		}
	})

	t.Run("BUF-2 BUF-3 Stop completes what is in progress and the wait group waits for it", func(t *testing.T) {
		t.Parallel()
		started, release := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		store := inmemory.New()
		mem := newMemory(t, middleware.Config{Enabled: true, MessageTokenThreshold: 50}, middleware.Deps{
			Store: store, WaitGroup: &wg,
			Observer: observeFunc(func(ctx context.Context, req observer.Request) (observer.Note, error) {
				close(started)
				<-release
				return brief(ctx, req)
			}),
		})
		key := backends.SessionKey{App: "a", User: "u", Session: "s"}
		send(t, mem, key, fact(1))
		<-started
		stopped := make(chan error, 1)
		go func() { stopped <- mem.Stop(context.Background()) }()
		for mem.Stats().DroppedTriggers == 0 { // Stop takes nothing new
			send(t, mem, backends.SessionKey{App: "a", User: "u", Session: "late"}, fact(2))
		}
		select {
		case <-stopped:
			t.Fatal("Stop did not wait for the observation")
		default:
		}
		close(release)
		if err := <-stopped; err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if o, _ := store.ListRecentObservations(context.Background(), key, 0); len(o) != 1 {
			t.Errorf("%d observations, want the one in progress", len(o))
		}
	})

	t.Run("BUF-3 past its deadline Stop cancels the work and says what was left; the next process derives it again", func(t *testing.T) {
		t.Parallel()
		store := inmemory.New()
		started := make(chan struct{})
		mem := newMemory(t, middleware.Config{Enabled: true, MessageTokenThreshold: 50}, middleware.Deps{
			Store: store,
			Observer: observeFunc(func(ctx context.Context, _ observer.Request) (observer.Note, error) {
				close(started)
				<-ctx.Done()
				return observer.Note{}, ctx.Err()
			}),
		})
		key := backends.SessionKey{App: "a", User: "u", Session: "s"}
		send(t, mem, key, fact(1))
		<-started
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := mem.Stop(ctx); err == nil || !strings.Contains(err.Error(), "1") {
			t.Errorf("Stop said %v, want an error that counts one session", err)
		}
		again := newMemory(t, middleware.Config{Enabled: true, MessageTokenThreshold: 50, Extractive: true}, middleware.Deps{Store: store})
		send(t, again, key, fact(1))
		if err := again.Flush(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if o, _ := store.ListRecentObservations(context.Background(), key, 0); len(o) != 1 {
			t.Errorf("%d observations after the next turn, want 1", len(o))
		}
	})

	t.Run("BUF-5 Start and Stop in any order, any number of times", func(t *testing.T) {
		t.Parallel()
		mem, err := middleware.New(middleware.Config{Enabled: true}, middleware.Deps{Store: inmemory.New()})
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []func(context.Context) error{mem.Stop, mem.Stop, mem.Start, mem.Start, mem.Stop, mem.Start, mem.Stop, mem.Stop} {
			if err := step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})

	t.Run("STO-4 two processes on one store write one observation per range", func(t *testing.T) {
		t.Parallel()
		store := inmemory.New()
		key := backends.SessionKey{App: "a", User: "u", Session: "s"}
		var gate sync.WaitGroup
		gate.Add(2)
		var once [2]sync.Once
		var mems [2]*middleware.Middleware
		for i := range mems {
			mems[i] = newMemory(t, middleware.Config{Enabled: true, MessageTokenThreshold: 50}, middleware.Deps{
				Store: withoutLeases{store},
				Observer: observeFunc(func(ctx context.Context, req observer.Request) (observer.Note, error) {
					once[i].Do(func() { gate.Done(); gate.Wait() }) // both write a note before either commits
					return brief(ctx, req)
				}),
			})
		}
		for _, mem := range mems {
			send(t, mem, key, fact(1))
		}
		conflicts := int64(0)
		for _, mem := range mems {
			if err := mem.Flush(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			conflicts += mem.Stats().Conflicts
		}
		if o, _ := store.ListRecentObservations(context.Background(), key, 0); len(o) != 1 || conflicts != 1 {
			t.Errorf("%d observations and %d conflicts, want one of each", len(o), conflicts)
		}
	})
}
