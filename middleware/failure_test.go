package middleware_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/model"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/observer"
	"github.com/adkmemory/adkmemory/retriever"
)

var errStore = errors.New("the store is away")

// failing is a store that fails on every call, or panics.
type failing struct {
	backends.Store
	panics bool
}

func (f failing) fail() error {
	if f.panics {
		panic("the store panics")
	}
	return errStore
}

func (f failing) Load(context.Context, backends.SessionKey, backends.Stamp) (*backends.Snapshot, error) {
	return nil, f.fail()
}
func (f failing) Lease(context.Context, backends.SessionKey, string, time.Duration) (bool, error) {
	return false, f.fail()
}
func (f failing) Release(context.Context, backends.SessionKey, string) error { return f.fail() }
func (f failing) Commit(context.Context, backends.SessionKey, backends.Commit) (backends.Observation, error) {
	return backends.Observation{}, f.fail()
}

// failingWrites loads but refuses every write.
type failingWrites struct{ backends.Store }

func (failingWrites) Commit(context.Context, backends.SessionKey, backends.Commit) (backends.Observation, error) {
	return backends.Observation{}, errStore
}
func (failingWrites) Condense(context.Context, backends.SessionKey, backends.Condense) (backends.Reflection, error) {
	return backends.Reflection{}, errStore
}
func (failingWrites) Lease(context.Context, backends.SessionKey, string, time.Duration) (bool, error) {
	return false, errStore
}

type panickingCounter struct{}

func (panickingCounter) Count(string) int { panic("the counter panics") }

type panickingRetriever struct{ noRetriever }

func (panickingRetriever) Retrieve(context.Context, retriever.Request) retriever.Result {
	panic("the retriever panics")
}

func TestFailOpen(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		set   func(*appConfig)
		count func(middleware.Stats) int64
		says  string
	}{
		{"a store that fails on every call", func(c *appConfig) { c.deps.Store = failing{} },
			func(s middleware.Stats) int64 { return s.LoadFailures }, errStore.Error()},
		{"a store that panics", func(c *appConfig) { c.deps.Store = failing{panics: true} },
			func(s middleware.Stats) int64 { return s.Panics }, "the store panics"},
		{"a counter that panics", func(c *appConfig) { c.deps.Counter = panickingCounter{} },
			func(s middleware.Stats) int64 { return s.Panics }, "the counter panics"},
		{"a retriever that panics", func(c *appConfig) { c.deps.Retriever = panickingRetriever{} },
			func(s middleware.Stats) int64 { return s.Panics }, "the retriever panics"},
		{"a store that refuses every write", func(c *appConfig) { c.deps.Store = failingWrites{inmemory.New()} },
			func(s middleware.Stats) int64 { return s.ObserveFailures }, errStore.Error()},
	} {
		t.Run("ADP-3 "+tc.name+" leaves the turn alone, logged once each and counted", func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			a := newApp(t, talker(), with(func(c *appConfig) {
				c.cfg.MessageTokenThreshold = 100
				c.deps.Logger = slog.New(slog.NewTextHandler(&lockedWriter{w: &log}, nil))
				tc.set(c)
			}))
			for i := range 12 {
				if got := a.say(fact(i)); !strings.HasPrefix(got, "Answer") {
					t.Fatalf("turn %d: %q", i, got)
				}
				a.settle()
			}
			if got := len(a.llm.last(t).Contents); got != 23 {
				t.Errorf("%d contents were sent, want the raw history of 23", got)
			}
			if n := tc.count(a.mem.Stats()); n == 0 || int64(strings.Count(log.String(), tc.says)) != n {
				t.Errorf("%d counted, %d logged", n, strings.Count(log.String(), tc.says))
			}
			if strings.Contains(log.String(), "Passenger") {
				t.Error("a message was logged")
			}
		})
	}

	t.Run("ADP-3 a store that fails in one call of three loses and doubles nothing", func(t *testing.T) {
		t.Parallel()
		store := &flaky{Store: inmemory.New()}
		a := newApp(t, talker(), with(func(c *appConfig) {
			c.cfg.MessageTokenThreshold = 150
			c.store, c.deps.Store = store.Store, store
		}))
		for i := range 40 {
			a.say(fact(i))
			a.settle()
		}
		o, err := a.store.ListNotes(t.Context(), a.key, backends.NoteQuery{})
		if err != nil {
			t.Fatal(err)
		}
		next := int64(0)
		for _, n := range o {
			if n.Generation == 0 {
				if n.Range.Start != next {
					t.Errorf("a note begins at %d, want %d", n.Range.Start, next)
				}
				next = n.Range.End + 1
			}
		}
		if next < 60 {
			t.Errorf("only %d messages were observed", next)
		}
	})

	t.Run("ADP-3 nil and odd requests", func(t *testing.T) {
		t.Parallel()
		mem := newMemory(t, middleware.Config{Enabled: true, Extractive: true, MessageTokenThreshold: 20}, middleware.Deps{Store: inmemory.New()})
		ctx := middleware.WithSessionKey(t.Context(), backends.SessionKey{App: "a", User: "u", Session: "s"})
		for i, req := range []*model.LLMRequest{
			nil,
			{},
			{Contents: []*genai.Content{nil}},
			{Contents: []*genai.Content{{}, {Role: "user"}, {Role: "user", Parts: []*genai.Part{nil, {}}}, {Role: "alien", Parts: []*genai.Part{{Text: "take me to your leader"}}}}},
			{Contents: []*genai.Content{genai.NewContentFromFunctionResponse("orphan", map[string]any{"a": 1}, genai.RoleUser)}},
			{Contents: []*genai.Content{genai.NewContentFromFunctionCall("never", nil, genai.RoleModel)}},
			{Contents: []*genai.Content{genai.NewContentFromText("broken \xff\xfe\x00 text "+strings.Repeat("\xf0\x28\x8c", 300), genai.RoleUser)}},
			{Contents: []*genai.Content{genai.NewContentFromText(strings.Repeat("huge ", 500_000), genai.RoleUser)}},
			{Contents: []*genai.Content{{Role: "user", Parts: []*genai.Part{{InlineData: &genai.Blob{MIMEType: "image/png", Data: bytes.Repeat([]byte{1}, 20<<20)}}, {Text: "this picture is larger than a store takes"}}}}},
		} {
			llm := talker()
			for _, err := range mem.Model(llm).GenerateContent(ctx, req, false) {
				if err != nil {
					t.Errorf("request %d: %v", i, err)
				}
			}
			if sent := llm.last(t); req != nil && len(sent.Contents) != len(req.Contents) {
				t.Errorf("request %d: %d of %d contents were sent", i, len(sent.Contents), len(req.Contents))
			}
			if err := mem.Flush(t.Context(), backends.SessionKey{App: "a", User: "u", Session: "s"}); err != nil {
				t.Fatal(err)
			}
		}
		if s := mem.Stats(); s.Panics != 0 || s.ObserveFailures != 0 || s.Observations == 0 {
			t.Errorf("stats: %+v", s)
		}
	})

	t.Run("ADP-3 a cancelled call is still the model's to refuse", func(t *testing.T) {
		t.Parallel()
		mem := newMemory(t, middleware.Config{Enabled: true}, middleware.Deps{Store: inmemory.New()})
		ctx, cancel := context.WithCancel(middleware.WithSessionKey(t.Context(), backends.SessionKey{App: "a", User: "u", Session: "s"}))
		cancel()
		var got error
		llm := probeErr(func(ctx context.Context) error { return ctx.Err() })
		for _, err := range mem.Model(llm).GenerateContent(ctx, &model.LLMRequest{Contents: []*genai.Content{genai.NewContentFromText("Hi.", genai.RoleUser)}}, false) {
			got = err
		}
		if !errors.Is(got, context.Canceled) {
			t.Errorf("got %v, want the model's own answer", got)
		}
	})
}

func TestMisbehavingObserverModel(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(yield func(*model.LLMResponse, error) bool){
		"an error":        func(yield func(*model.LLMResponse, error) bool) { yield(nil, errors.New("no")) },
		"nil and nil":     func(yield func(*model.LLMResponse, error) bool) { yield(nil, nil) },
		"nothing":         func(func(*model.LLMResponse, error) bool) {},
		"an empty answer": func(yield func(*model.LLMResponse, error) bool) { yield(says("")) },
		"a 1 MB answer": func(yield func(*model.LLMResponse, error) bool) {
			yield(says(strings.Repeat("all work and no play ", 50_000)))
		},
		"repetition":        func(yield func(*model.LLMResponse, error) bool) { yield(says(strings.Repeat("the same again. ", 40))) },
		"a panic":           func(func(*model.LLMResponse, error) bool) { panic("no") },
		"an error response": func(yield func(*model.LLMResponse, error) bool) { yield(&model.LLMResponse{ErrorCode: "429"}, nil) },
	} {
		t.Run("OBS-4 "+name, func(t *testing.T) {
			t.Parallel()
			a := newApp(t, talker(), with(func(c *appConfig) {
				c.cfg.Extractive, c.cfg.MessageTokenThreshold, c.cfg.ObserverAttempts, c.cfg.FailuresBeforeFallback = false, 150, 1, 2
				c.deps.Model = raw(answer)
			}))
			for i := range 12 {
				if got := a.say(fact(i)); !strings.HasPrefix(got, "Answer") {
					t.Fatalf("turn %d: %q", i, got)
				}
				a.settle()
			}
			if s := a.mem.Stats(); s.ObserveFailures != 2 || s.Fallbacks == 0 {
				t.Errorf("stats: %+v; want two failures, then the extractive twin", s)
			}
			if o := a.snapshot().Observations; len(o) == 0 || o[0].Range.Start != 0 || o[0].Writer != observer.WriterExtractive {
				t.Errorf("%d observations", len(o))
			}
		})
	}
}

// raw is a model that yields as it likes.
type raw func(yield func(*model.LLMResponse, error) bool)

func (raw) Name() string { return "raw" }
func (r raw) GenerateContent(context.Context, *model.LLMRequest, bool) iter.Seq2[*model.LLMResponse, error] {
	return iter.Seq2[*model.LLMResponse, error](r)
}

type probeErr func(ctx context.Context) error

func (probeErr) Name() string { return "probe" }
func (p probeErr) GenerateContent(ctx context.Context, _ *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) { yield(nil, p(ctx)) }
}

// flaky fails in one call of three, the same ones in every run.
type flaky struct {
	backends.Store
	calls atomic.Int64
}

func (e *flaky) fail(what string) error {
	if e.calls.Add(1)*2654435761>>7%3 == 0 {
		return fmt.Errorf("%s: %w", what, errStore)
	}
	return nil
}

func (e *flaky) Load(ctx context.Context, key backends.SessionKey, have backends.Stamp) (*backends.Snapshot, error) {
	if err := e.fail("load"); err != nil {
		return nil, err
	}
	return e.Store.Load(ctx, key, have)
}

func (e *flaky) Commit(ctx context.Context, key backends.SessionKey, c backends.Commit) (backends.Observation, error) {
	if err := e.fail("commit"); err != nil {
		return backends.Observation{}, err
	}
	return e.Store.Commit(ctx, key, c)
}

func (e *flaky) Condense(ctx context.Context, key backends.SessionKey, c backends.Condense) (backends.Reflection, error) {
	if err := e.fail("condense"); err != nil {
		return backends.Reflection{}, err
	}
	return e.Store.Condense(ctx, key, c)
}
