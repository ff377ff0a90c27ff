package middleware_test

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/adk/v2/session"
	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/gormstore/gormtest"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/middleware"
)

// What a turn may cost when nothing has changed since the last one. Times are in the benchmarks: they depend on the
// machine, these do not.
const (
	warmAllocations = 40
	warmQueries     = 1
	idleSession     = 4 << 10 // bytes
)

func TestWarmTurnAllocations(t *testing.T) {
	for _, behind := range []int{100, 20_000} {
		t.Run(fmt.Sprintf("CTX-1 a warm turn allocates little, with %d messages behind it", behind), func(t *testing.T) {
			w := newWarm(t, inmemory.New(), behind, false)
			if n := testing.AllocsPerRun(100, w.call); n > warmAllocations {
				t.Errorf("%v allocations, at most %d are wanted", n, warmAllocations)
			}
		})
	}
}

// countedEvents counts how often an event is looked at.
type countedEvents struct {
	fixedEvents
	looks int
}

func (e *countedEvents) At(i int) *session.Event {
	e.looks++
	return e.fixedEvents.At(i)
}

func TestWarmTurnGrowth(t *testing.T) {
	for _, layout := range []string{middleware.LayoutDefault, middleware.LayoutCacheFriendly} {
		for _, tools := range []bool{false, true} {
			t.Run(fmt.Sprintf("CTX-1 a warm turn looks at as many events, however long the history: %s layout, tools %v", layout, tools), func(t *testing.T) {
				t.Parallel()
				looks := func(behind int) int {
					w := newWarm(t, inmemory.New(), behind, tools, with(func(c *appConfig) { c.cfg.Layout = layout }))
					sess := w.ctx.(callContext).session
					counted := &countedEvents{fixedEvents: sess.events.(fixedEvents)}
					sess.events = counted
					w.call()
					return counted.looks
				}
				// The multiples of 6 put the calls and responses in the same places.
				if few, many := looks(102), looks(19_998); few != many {
					t.Errorf("%d events were looked at with 102 messages behind, %d with 19998", few, many)
				}
			})
		}
	}
}

// sqlStore is a store whose statements can be counted.
type sqlStore interface {
	backends.Store
	DB() *gorm.DB
	Reader() *gorm.DB
}

// countStatements counts what the store asks its database from now on.
func countStatements(t *testing.T, store sqlStore) *atomic.Int64 {
	t.Helper()
	n := new(atomic.Int64)
	count := func(*gorm.DB) { n.Add(1) }
	handles := []*gorm.DB{store.DB()}
	if store.Reader().Callback() != store.DB().Callback() {
		handles = append(handles, store.Reader())
	}
	for _, db := range handles {
		if err := gormtest.After(db, count); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func TestWarmTurnQueries(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) sqlStore{
		"SQLite":   func(tb testing.TB) sqlStore { return sqliteStore(tb) },
		"Postgres": func(tb testing.TB) sqlStore { return postgresStore(tb) },
	} {
		t.Run("OPS-2 a warm turn asks "+name+" once", func(t *testing.T) {
			t.Parallel()
			store := open(t)
			w := newWarm(t, store, 100, true)
			n := countStatements(t, store)
			const calls = 10
			for range calls {
				w.call()
			}
			if got := n.Load(); got != calls*warmQueries {
				t.Errorf("%d statements in %d calls", got, calls)
			}
		})
	}

	t.Run("OPS-2 so does every model call of a growing conversation, but for the first and those after a note", func(t *testing.T) {
		t.Parallel()
		store := sqliteStore(t)
		a := newApp(t, talker(), with(func(c *appConfig) {
			c.store = store
			c.cfg.MessageTokenThreshold, c.cfg.MaxObservationBatchTokens = 1<<20, 1<<20
		}))
		a.say(fact(0))
		n := countStatements(t, store)
		const turns = 20
		for i := range turns {
			a.say(fact(i))
		}
		if got := n.Load(); got != turns*warmQueries {
			t.Errorf("%d statements in %d turns", got, turns)
		}
	})
}

// heap is what is in use after everything that can go is gone.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// talk makes one call in each of n sessions, with tool outputs of a kilobyte, and returns the last one's instruction.
func talk(t *testing.T, mem *middleware.Middleware, n int) string {
	t.Helper()
	events := conversation(60, true)
	for i, e := range events {
		e.ID = fmt.Sprint("m", i)
		if r := e.Content.Parts[0].FunctionResponse; r != nil {
			r.Response["details"] = strings.Repeat("seat 12A is free; ", 60)
		}
	}
	in := &silent{}
	w := warm{llm: mem.Model(in), req: requestOf(events)}
	for i := range n {
		w.ctx = callContext{Context: t.Context(), session: &fixedSession{key: gormtest.Filled(i), events: events}}
		w.call()
	}
	return systemOf(in.sent)
}

func TestIdleSessions(t *testing.T) {
	const notes = 25
	sessions := 10_000
	if raceEnabled {
		sessions = 10
	}
	store := sqliteStore(t)
	gormtest.Fill(t, store.DB(), sessions, notes)
	config := middleware.Config{Enabled: true, Extractive: true, MessageTokenThreshold: 10_000}
	quiet := slog.New(slog.NewTextHandler(t.Output(), nil))

	t.Run("SEC-4 ten thousand idle sessions hold less than 4 KiB each", func(t *testing.T) {
		if raceEnabled {
			t.Skip("measured without the race detector")
		}
		mem, err := middleware.New(config, middleware.Deps{Store: store, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		talk(t, mem, 1) // the pools' connections and caches
		before := heap()
		if last := talk(t, mem, sessions); !strings.Contains(last, "was told") {
			t.Fatalf("the last session has no notes: %q", last)
		}
		each := (heap() - before) / int64(sessions)
		t.Logf("%d bytes a session", each)
		if each > idleSession {
			t.Errorf("%d bytes a session, at most %d are wanted", each, idleSession)
		}
		runtime.KeepAlive(mem)
	})

	t.Run("SEC-4 a session whose state was evicted is read from the store again", func(t *testing.T) {
		config := config
		config.SessionCache = 1
		mem, err := middleware.New(config, middleware.Deps{Store: store, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		events := conversation(60, true)
		in := &silent{}
		w := warm{llm: mem.Model(in), req: requestOf(events)}
		section := func(i int) string {
			w.ctx = callContext{Context: t.Context(), session: &fixedSession{key: gormtest.Filled(i), events: events}}
			w.call()
			return systemOf(in.sent)
		}
		first := section(1)
		if other := section(2); !strings.Contains(first, "order 1 ") || !strings.Contains(other, "order 2 ") {
			t.Fatalf("not the sessions' own notes: %q, %q", first, other)
		}
		if again := section(1); again != first {
			t.Errorf("the evicted session was sent %q, before %q", again, first)
		}
	})

	t.Run("SEC-4 triggers past the queue's limit are dropped and counted, and come again", func(t *testing.T) {
		config := config
		config.MessageTokenThreshold, config.MaxObservationBatchTokens, config.QueueLimit = 100, 10_000, 50
		mem, err := middleware.New(config, middleware.Deps{Store: inmemory.New(), Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		talk(t, mem, 200)
		if s := mem.Stats(); s.QueueDepth != 50 || s.DroppedTriggers != 150 {
			t.Errorf("%d wait, %d were dropped", s.QueueDepth, s.DroppedTriggers)
		}
		if err := mem.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		flush := func(n int) {
			for i := range n {
				if err := mem.Flush(t.Context(), gormtest.Filled(i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		flush(50)
		talk(t, mem, 60) // the first 50 have their notes
		flush(60)
		if err := mem.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := mem.Stats(); s.Observations != 60 || s.QueueDepth != 0 {
			t.Errorf("%d notes of 60, %d still wait", s.Observations, s.QueueDepth)
		}
	})
}
