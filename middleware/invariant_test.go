package middleware_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genai"
	"pgregory.net/rapid"

	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/middleware"
)

// stepsPerRun times rapid's 100 runs are the random steps of a plain test; -rapid.checks=N makes it longer.
const stepsPerRun = 100

// TestInvariant drives random conversations, faults, restarts and two processes on one store. At every model call each
// message that ADK shows to the agent is sent, or in a note of the prompt, or in a note counted as left out, or counted
// as dropped for the hard limit; pairs are whole, budgets kept, and each message is observed exactly once per stream.
func TestInvariant(t *testing.T) {
	t.Parallel()
	t.Run("BUD-7 nothing leaves the window before a note covers it", func(t *testing.T) {
		t.Parallel()
		var steps, calls int64
		rapid.Check(t, func(rt *rapid.T) {
			u := newUniverse(rt)
			todo := rapid.SliceOfN(rapid.Custom(drawStep), stepsPerRun, stepsPerRun).Draw(rt, "steps")
			failed := inBubble(t, func() {
				u.begin()
				defer u.abandon()
				for _, s := range todo {
					u.step(s)
				}
				u.end()
			})
			if failed != nil {
				rt.Fatalf("%v", failed)
			}
			steps, calls = steps+int64(len(todo)), calls+u.calls.Load()
		})
		t.Logf("%d steps, %d model calls", steps, calls)
	})
}

// inBubble runs f under a clock of its own, so that nobody waits for real, and returns what f panicked with.
func inBubble(t *testing.T, f func()) (failed any) {
	synctest.Test(t, func(*testing.T) {
		defer func() { failed = recover() }()
		f()
	})
	return failed
}

func newUniverse(t *rapid.T) *universe {
	threshold := rapid.IntRange(20, 200).Draw(t, "threshold")
	budget := rapid.IntRange(100, 800).Draw(t, "budget")
	u := &universe{
		key:      backends.SessionKey{App: "app", User: "user", Session: "session"},
		replicas: make([]*replica, 2),
		shape:    rapid.SampledFrom([]string{"solo", "transfer", "task", "parallel"}).Draw(t, "shape"),
		plugin:   rapid.Bool().Draw(t, "plugin"),
		dice:     &dice{r: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))},
		cfg: middleware.Config{
			Enabled:                   true,
			MessageTokenThreshold:     threshold,
			MaxObservationBatchTokens: threshold * rapid.IntRange(1, 5).Draw(t, "batch"),
			ObservationTokenThreshold: rapid.IntRange(20, 400).Draw(t, "observations"),
			MaxMessageTokenBudget:     budget,
			HardMessageTokenLimit:     budget * rapid.IntRange(1, 4).Draw(t, "hard"),
			MaxWait:                   time.Second,
			MemoryTokenBudget:         rapid.SampledFrom([]int{150, 4000, 4000}).Draw(t, "memory"),
			Layout:                    rapid.SampledFrom([]string{middleware.LayoutDefault, middleware.LayoutCacheFriendly}).Draw(t, "layout"),
			RawObservations:           rapid.SampledFrom([]string{middleware.RawOnce, middleware.RawOff}).Draw(t, "raw"),
			RawObservationBuffer:      3,
			ObserverAttempts:          1,
			FailuresBeforeFallback:    -1,
		},
	}
	return u
}

// begin makes what has to live in the bubble.
func (u *universe) begin() {
	u.clean, u.sessions, u.gate = inmemory.New(), session.InMemoryService(), &gate{open: make(chan struct{})}
	u.turnstile = make(chan struct{}, 1)
	u.store = faulty{u.clean, u}
	u.gate.set(true)
	for i := range u.replicas {
		u.start(i)
	}
}

// step is one thing that happens, in one of the two processes.
type step struct{ process, what int }

func drawStep(t *rapid.T) step {
	return step{rapid.IntRange(0, 1).Draw(t, "process"), rapid.IntRange(0, 99).Draw(t, "what")}
}

func (u *universe) step(s step) {
	time.Sleep(time.Millisecond) // of the bubble's clock: turns do not come at one and the same time
	i, p := s.process, s.what
	switch {
	case p < 6:
		u.late(i)
	case p < 10:
		_ = u.stop(i, p%2 == 0)
		u.start(i)
	case p < 14:
		u.gate.set(false)
	case p < 22:
		u.gate.set(true)
		u.flush(i)
	case p < 25:
		u.faults.Store(int64(p-22) * 15)
	case p < 26:
		u.flush(i)
		u.checkArchive()
	case p < 34 && (u.brief || p == 26):
		u.next()
	case p < 99:
		u.turn(i, &genai.Part{Text: u.words(1 + u.dice.n(80))})
	default:
		synctest.Wait()
	}
}

// next begins another session; the background may still work on this one.
func (u *universe) next() {
	u.sessionsSeen++
	u.key.Session = "session" + strconv.Itoa(u.sessionsSeen)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pending = nil
}

// late answers a call that was made some time ago.
func (u *universe) late(i int) {
	pending := u.pending
	if len(pending) == 0 || u.shape == "parallel" {
		return
	}
	id := pending[u.dice.n(len(pending))]
	u.turn(i, &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: id, Name: "slow", Response: map[string]any{"result": u.words(20)}}})
}

func (u *universe) flush(i int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_ = u.replicas[i].mem.Flush(ctx, u.key) // while the gate is closed it runs into its deadline
}

// abandon ends what a failed run has left.
func (u *universe) abandon() {
	for i, r := range u.replicas {
		if r != nil {
			_ = u.stop(i, true)
		}
	}
}

// end lets everything settle and checks what is stored.
func (u *universe) end() {
	u.gate.set(true)
	u.faults.Store(0)
	u.turn(0, &genai.Part{Text: u.words(1000)})
	for i := range u.replicas {
		u.flush(i)
		if err := u.stop(i, false); err != nil {
			u.fatalf("stop: %v", err)
		}
	}
	u.checkArchive()
	u.checkNotes()
	if err := u.clean.Close(); err != nil {
		u.fatalf("%v", err)
	}
}
