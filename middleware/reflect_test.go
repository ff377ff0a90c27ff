package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/backends/sqlite"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/observer"
	"github.com/adkmemory/adkmemory/middleware/reflector"
	"github.com/adkmemory/adkmemory/middleware/token"
)

type reflectFunc func(ctx context.Context, req reflector.Request) (observer.Note, error)

func (f reflectFunc) Reflect(ctx context.Context, req reflector.Request) (observer.Note, error) {
	return f(ctx, req)
}

// condense names the generation and how many notes there were.
func condense(_ context.Context, req reflector.Request) (observer.Note, error) {
	generation := 1
	for _, r := range req.Reflections {
		generation = max(generation, r.Generation+1)
	}
	return observer.Note{Text: fmt.Sprintf("Generation %d over %d notes.", generation, len(req.Observations)+len(req.Reflections)), Writer: "condenser"}, nil
}

// wordy is a note of about 50 tokens.
func wordy(_ context.Context, req observer.Request) (observer.Note, error) {
	return observer.Note{Text: "Note. " + strings.Repeat("Ada decided something. ", 9), Writer: "wordy"}, nil
}

func reflecting(r reflector.Reflector, more ...appOption) []appOption {
	return append([]appOption{observedBy(observeFunc(wordy)), with(func(c *appConfig) {
		c.deps.Reflector = r
		c.cfg.MessageTokenThreshold, c.cfg.ObservationTokenThreshold, c.cfg.ReflectionConsolidationThreshold = 100, 200, 3
	})}, more...)
}

func TestReflect(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) backends.Store{
		"inmemory": func(*testing.T) backends.Store { return inmemory.New() },
		"sqlite": func(t *testing.T) backends.Store {
			store, err := sqlite.Open(t.Context(), t.TempDir()+"/memory.db")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			return store
		},
	} {
		t.Run("REF-1 REF-2 REF-3 MET-1 observations become reflections, those one of the next generation, on "+name, func(t *testing.T) {
			t.Parallel()
			var sizes []int
			a := newApp(t, talker(), reflecting(reflectFunc(func(ctx context.Context, req reflector.Request) (observer.Note, error) {
				total := 0
				for _, o := range req.Observations {
					total += o.Tokens
				}
				if len(req.Observations) > 0 {
					sizes = append(sizes, total)
				}
				return condense(ctx, req)
			}), with(func(c *appConfig) { c.store = open(t) }))...)
			for i := 0; a.mem.Stats().Reflections < 8; i++ {
				a.say(fact(i))
				a.settle()
				snap := a.snapshot()
				tokens := 0
				for _, o := range snap.Observations {
					tokens += o.Tokens
				}
				if tokens > 200 || len(snap.Reflections) >= 3 {
					t.Fatalf("turn %d: %d observation tokens and %d reflections are active", i, tokens, len(snap.Reflections))
				}
			}
			for _, s := range sizes {
				if s <= 200 {
					t.Errorf("%d tokens of observations were condensed, within the threshold", s)
				}
			}
			notes, err := a.store.ListNotes(t.Context(), a.key, backends.NoteQuery{Limit: backends.MaxListItems})
			if err != nil {
				t.Fatal(err)
			}
			byID := map[string]backends.StoredNote{}
			for _, n := range notes {
				byID[n.ID] = n
			}
			highest := 0
			for _, n := range notes {
				highest = max(highest, n.Generation)
				if n.Generation == 0 {
					continue
				}
				if n.Tokens != (token.Estimator{}).Count(n.Text) || n.Writer != "condenser" {
					t.Errorf("%d tokens by %q", n.Tokens, n.Writer)
				}
				sources := 0
				for i, id := range n.Sources {
					source := byID[id]
					sources = max(sources, source.Generation)
					if source.Active || source.ParentID != n.ID {
						t.Errorf("source %s of %s: %+v", id, n.ID, source)
					}
					if i > 0 && source.Range.Start != byID[n.Sources[i-1]].Range.End+1 {
						t.Error("the sources are not contiguous")
					}
				}
				if n.Generation != sources+1 {
					t.Errorf("generation %d over sources of %d", n.Generation, sources)
				}
				if n.Range.Start != byID[n.Sources[0]].Range.Start || n.Range.EndID != byID[n.Sources[len(n.Sources)-1]].Range.EndID {
					t.Errorf("range %+v", n.Range)
				}
			}
			if highest < 2 {
				t.Errorf("the highest generation is %d", highest)
			}
		})
	}

	t.Run("REF-4 without an archive neither condensed notes nor messages are kept", func(t *testing.T) {
		t.Parallel()
		a := newApp(t, talker(), reflecting(reflectFunc(condense), with(func(c *appConfig) { c.cfg.Archive = new(bool) }))...)
		for i := 0; a.mem.Stats().Reflections < 2; i++ {
			a.say(fact(i))
			a.settle()
		}
		notes, _ := a.store.ListNotes(t.Context(), a.key, backends.NoteQuery{})
		for _, n := range notes {
			if !n.Active {
				t.Errorf("%s was condensed and is still there", n.ID)
			}
		}
		if m, _ := a.store.ListMessages(t.Context(), a.key, backends.MessageQuery{}); len(m) != 0 {
			t.Errorf("%d messages are kept", len(m))
		}
	})

	t.Run("REF-5 a reflection that is not smaller is rejected, and not tried again before the observations have grown", func(t *testing.T) {
		t.Parallel()
		var tried atomic.Int64
		a := newApp(t, talker(), reflecting(reflectFunc(func(_ context.Context, req reflector.Request) (observer.Note, error) {
			tried.Add(1)
			var all strings.Builder
			for _, o := range req.Observations {
				all.WriteString(o.Text + "And more.")
			}
			return observer.Note{Text: all.String()}, nil
		}), with(func(c *appConfig) { c.cfg.ObserverAttempts, c.cfg.FailuresBeforeFallback = 1, -1 }))...)
		observations := int64(0)
		for i := 0; tried.Load() < 3; i++ {
			before := tried.Load()
			a.say(fact(i))
			a.settle()
			now := a.mem.Stats().Observations
			if tried.Load() > before && now == observations {
				t.Fatal("it was tried again although nothing has grown")
			}
			observations = now
		}
		snap := a.snapshot()
		if len(snap.Reflections) != 0 || len(snap.Observations) != int(observations) {
			t.Errorf("%d reflections, %d of %d observations", len(snap.Reflections), len(snap.Observations), observations)
		}
	})

	t.Run("REF-5 refused reflections are left alone until there are more of them", func(t *testing.T) {
		t.Parallel()
		a := newApp(t, talker(), reflecting(reflectFunc(condense), with(func(c *appConfig) { c.cfg.ReflectionConsolidationThreshold = 1000 }))...)
		for i := 0; a.mem.Stats().Reflections < 3; i++ {
			a.say(fact(i))
			a.settle()
		}
		tried := 0
		b := newMemory(t, middleware.Config{Enabled: true, ReflectionConsolidationThreshold: 2, ObserverAttempts: 1}, middleware.Deps{
			Store: a.store,
			Reflector: reflectFunc(func(context.Context, reflector.Request) (observer.Note, error) {
				tried++
				return observer.Note{Text: strings.Repeat("Longer than all of them together. ", 20)}, nil
			}),
		})
		if err := b.ReflectOnReflections(t.Context(), a.key); !errors.Is(err, observer.ErrRejected) || tried != 1 {
			t.Fatalf("%v after %d tries", err, tried)
		}
		if err := b.ReflectOnReflections(t.Context(), a.key); err != nil || tried != 1 {
			t.Errorf("%v after %d tries, though nothing has grown", err, tried)
		}
	})

	t.Run("MET-2 REF-1 a failing Reflector changes nothing else", func(t *testing.T) {
		t.Parallel()
		a := newApp(t, talker(), reflecting(reflectFunc(func(context.Context, reflector.Request) (observer.Note, error) {
			return observer.Note{}, errors.New("the model is away")
		}), with(func(c *appConfig) { c.cfg.ObserverAttempts, c.cfg.FailuresBeforeFallback = 1, -1 }))...)
		for i := range 30 {
			if got := a.say(fact(i)); !strings.HasPrefix(got, "Answer") {
				t.Fatal(got)
			}
			a.settle()
		}
		s, snap := a.mem.Stats(), a.snapshot()
		if s.ReflectFailures == 0 || s.ObserveFailures != 0 || len(snap.Reflections) != 0 || int64(len(snap.Observations)) != s.Observations || s.Observations < 10 {
			t.Errorf("%d observations, stats %+v", len(snap.Observations), s)
		}
	})

	t.Run("MET-1 by hand", func(t *testing.T) {
		t.Parallel()
		a := newApp(t, talker(), reflecting(reflectFunc(condense), with(func(c *appConfig) { c.cfg.ReflectionConsolidationThreshold = 1000 }))...)
		for i := 0; a.mem.Stats().Reflections < 4; i++ {
			a.say(fact(i))
			a.settle()
		}
		b := newMemory(t, middleware.Config{Enabled: true, ReflectionConsolidationThreshold: 2}, middleware.Deps{Store: a.store, Reflector: reflectFunc(condense)})
		if err := b.ReflectOnReflections(t.Context(), a.key); err != nil {
			t.Fatal(err)
		}
		if r := a.snapshot().Reflections; len(r) != 1 || r[0].Generation != 2 || len(r[0].Sources) != 4 {
			t.Errorf("%+v", r)
		}
	})

	t.Run("CFG-4 terse notes are condensed before their number leaves one out of the prompt", func(t *testing.T) {
		t.Parallel()
		a := newApp(t, talker(), observedBy(observeFunc(brief)), with(func(c *appConfig) {
			c.deps.Reflector = reflectFunc(condense)
			c.cfg.MessageTokenThreshold, c.cfg.MaxObservationsInContext = 60, 4
		}))
		for i := range 40 {
			a.say(fact(i))
			a.settle()
		}
		if s := a.mem.Stats(); s.NotesLeftOut != 0 || s.Reflections == 0 {
			t.Errorf("stats: %+v", s)
		}
	})
}
