package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/observer"
	"github.com/adkmemory/adkmemory/middleware/reflector"
)

func TestFallback(t *testing.T) {
	t.Parallel()

	t.Run("OBS-6 a Reflector that fails again and again falls back although the Observer works", func(t *testing.T) {
		t.Parallel()
		a := newApp(t, talker(), reflecting(reflectFunc(func(context.Context, reflector.Request) (observer.Note, error) {
			return observer.Note{}, errors.New("the model is away")
		}), with(func(c *appConfig) { c.cfg.ObserverAttempts = 1 }))...)
		for i := range 30 {
			a.say(fact(i))
			a.settle()
		}
		if s := a.mem.Stats(); s.Reflections == 0 || s.Fallbacks == 0 {
			t.Errorf("stats: %+v", s)
		}
	})

	t.Run("OBS-6 a plugin without a model extracts from the first note on, in any number of sessions", func(t *testing.T) {
		t.Parallel()
		a := newApp(t, talker(), with(plugged), with(func(c *appConfig) { c.cfg.Extractive, c.cfg.MessageTokenThreshold = false, 50 }))
		for i := range 12 {
			b := *a
			b.key.Session = fmt.Sprint("session-", i)
			b.say(fact(i))
			b.settle()
		}
		if s := a.mem.Stats(); s.ObserveFailures > 0 || s.Observations < 12 {
			t.Errorf("stats: %+v", s)
		}
	})
}

func TestSmallStreams(t *testing.T) {
	t.Parallel()
	t.Run("OBS-1 several small streams are observed once they are past the threshold together", func(t *testing.T) {
		t.Parallel()
		a := newApp(t, talker(), observedBy(observeFunc(brief)))
		made, err := a.session.Create(t.Context(), &session.CreateRequest{AppName: a.key.App, UserID: a.key.User, SessionID: a.key.Session})
		if err != nil {
			t.Fatal(err)
		}
		for branch := range 5 {
			for i := range 4 {
				e := session.NewEvent(t.Context(), "invocation")
				e.Author, e.Branch = "user", fmt.Sprint("branch-", branch)
				e.Content = genai.NewContentFromText(fact(i*10+branch), genai.RoleUser)
				if err := a.session.AppendEvent(t.Context(), made.Session, e); err != nil {
					t.Fatal(err)
				}
			}
		}
		a.say("Hello.")
		a.settle()
		if len(a.snapshot().Observations) == 0 {
			t.Errorf("stats: %+v", a.mem.Stats())
		}
	})
}

// limited is an application's own wrapper around a model, such as one that limits its rate.
type limited struct {
	model.LLM
	calls *atomic.Int64
}

func (l limited) Unwrap() model.LLM { return l.LLM }
func (l limited) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	l.calls.Add(1)
	return l.LLM.GenerateContent(ctx, req, stream)
}

func TestOwnWrapper(t *testing.T) {
	t.Parallel()
	t.Run("OBS-3 the Observer's calls pass through the application's own wrapper", func(t *testing.T) {
		t.Parallel()
		llm, calls := talker(), new(atomic.Int64)
		mem := newMemory(t, middleware.Config{Enabled: true, MessageTokenThreshold: 50, ObserverAttempts: 1}, middleware.Deps{Store: inmemory.New()})
		key := backends.SessionKey{App: "a", User: "u", Session: "s"}
		req := &model.LLMRequest{Contents: []*genai.Content{genai.NewContentFromText(fact(1), genai.RoleUser)}}
		for range mem.Model(limited{llm, calls}).GenerateContent(middleware.WithSessionKey(t.Context(), key), req, false) { //nolint:errcheck // the answer does not matter
		}
		if err := mem.Flush(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if int(calls.Load()) != llm.calls() || llm.calls() != 2 {
			t.Errorf("%d of %d calls went through the wrapper", calls.Load(), llm.calls())
		}
	})
}
