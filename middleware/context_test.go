package middleware_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/prompt"
	"github.com/adkmemory/adkmemory/middleware/token"
	"github.com/adkmemory/adkmemory/retriever"
)

// wordLayer answers every question with its name.
type wordLayer string

func (l wordLayer) Name() string { return string(l) }
func (l wordLayer) Retrieve(_ context.Context, q retriever.Query) ([]retriever.Item, error) {
	return []retriever.Item{{Key: "k", Text: fmt.Sprintf("%s of %s/%s", l, q.Key.User, q.Key.Session), Score: 1}}, nil
}

func withKnowledge(t *testing.T, names ...string) appOption {
	t.Helper()
	var layers []retriever.Layer
	for _, n := range names {
		layers = append(layers, wordLayer(n))
	}
	r, err := retriever.New(retriever.Config{}, layers...)
	if err != nil {
		t.Fatal(err)
	}
	return with(func(c *appConfig) { c.deps.Retriever = r })
}

// remembered is an app whose session has reflections and observations.
func remembered(t *testing.T, opts ...appOption) *app {
	t.Helper()
	a := newApp(t, talker(), append([]appOption{with(func(c *appConfig) {
		c.cfg.MessageTokenThreshold, c.cfg.ObservationTokenThreshold = 300, 300
	})}, opts...)...)
	for i := range 30 {
		a.say(fact(i))
		a.settle()
	}
	for i := 30; len(a.snapshot().Observations) == 0; i++ {
		a.say(fact(i))
		a.settle()
	}
	a.say("What do you remember?")
	return a
}

func TestContext(t *testing.T) {
	t.Parallel()

	t.Run("CTX-1 CTX-3 ADP-1 base prompt, knowledge, reflections, observations, then messages", func(t *testing.T) {
		t.Parallel()
		a := remembered(t, withKnowledge(t, retriever.UserKnowledge, retriever.AgentLearnings, retriever.Observations, "own-layer"))
		req := a.llm.last(t)
		system := systemOf(req)
		at := -1
		for _, want := range []string{"You are a helpful travel agent.", "User Knowledge", "Known Solutions", prompt.MemoryHeading, "### Reflections", "### Observations"} {
			next := strings.Index(system, want)
			if next <= at {
				t.Errorf("%q stands at %d, after %d is due", want, next, at)
			}
			at = next
		}
		if !strings.Contains(system, "own-layer of user/session") || strings.Contains(system, "observations of user") {
			t.Error("own layers are asked, the note layers are not: those notes stand in the prompt anyway")
		}
		if textOf(req.Contents[len(req.Contents)-1]) != "What do you remember?" {
			t.Error("the newest message is not the last content")
		}
	})

	t.Run("CTX-9 the cache-friendly layout puts what changes with the query last", func(t *testing.T) {
		t.Parallel()
		a := remembered(t, withKnowledge(t, retriever.UserKnowledge), with(func(c *appConfig) {
			c.cfg.Layout, c.cfg.MaxMessageTokenBudget = middleware.LayoutCacheFriendly, 500
		}))
		system := systemOf(a.llm.last(t))
		if m, k := strings.Index(system, prompt.MemoryHeading), strings.Index(system, "User Knowledge"); m < 0 || k < m {
			t.Errorf("memory at %d, knowledge at %d", m, k)
		}
	})

	t.Run("CTX-9 memory and the window's start change together and rarely", func(t *testing.T) {
		t.Parallel()
		a := newApp(t, talker(), with(func(c *appConfig) {
			c.cfg.Layout, c.cfg.MaxMessageTokenBudget, c.cfg.MessageTokenThreshold = middleware.LayoutCacheFriendly, 2000, 300
		}))
		changes, moves, system, first := 0, 0, "", ""
		for i := range 120 {
			a.say(fact(i))
			a.settle()
			req := a.llm.last(t)
			moved := textOf(req.Contents[0]) != first
			if s := systemOf(req); s != system {
				changes++
				if !moved {
					t.Errorf("turn %d: the instruction changed although the window begins where it did", i)
				}
				system = s
			}
			if moved {
				moves++
				first = textOf(req.Contents[0])
			}
		}
		if moves < 5 || moves > 30 || changes < 5 {
			t.Errorf("%d changes of memory and %d moves of the window in 120 turns", changes, moves)
		}
	})

	t.Run("CTX-2 with nothing to add the request reaches the model as it came", func(t *testing.T) {
		t.Parallel()
		mem := newMemory(t, middleware.Config{Enabled: true}, middleware.Deps{Store: inmemory.New()})
		req := &model.LLMRequest{Contents: []*genai.Content{genai.NewContentFromText("Hello.", genai.RoleUser)}}
		llm := talker()
		for range mem.Model(llm).GenerateContent(middleware.WithSessionKey(t.Context(), backends.SessionKey{App: "a", User: "u", Session: "s"}), req, false) { //nolint:errcheck // see above
		}
		if llm.last(t) != req {
			t.Error("another request reached the model")
		}
	})

	t.Run("CTX-5 without a session key there is no memory", func(t *testing.T) {
		t.Parallel()
		mem := newMemory(t, middleware.Config{Enabled: true, Extractive: true, MessageTokenThreshold: 10}, middleware.Deps{Store: failing{}})
		req := &model.LLMRequest{Contents: []*genai.Content{genai.NewContentFromText(fact(1), genai.RoleUser)}}
		for _, ctx := range []context.Context{
			t.Context(),
			middleware.WithSessionKey(t.Context(), backends.SessionKey{}),
			middleware.WithSessionKey(t.Context(), backends.SessionKey{App: "a", User: "u"}),
		} {
			llm := talker()
			for range mem.Model(llm).GenerateContent(ctx, req, false) { //nolint:errcheck // see above
			}
			if llm.last(t) != req {
				t.Error("another request reached the model")
			}
		}
		if s := mem.Stats(); s != (middleware.Stats{}) {
			t.Errorf("the store was asked: %+v", s)
		}
	})

	t.Run("CTX-8 the instruction is appended to, and the caller's request is not changed", func(t *testing.T) {
		t.Parallel()
		a := remembered(t)
		req := &model.LLMRequest{
			Model:    "talker",
			Contents: []*genai.Content{genai.NewContentFromText("And now?", genai.RoleUser), nil, {Role: "model", Parts: []*genai.Part{nil, {Text: "Well."}}}},
			Config: &genai.GenerateContentConfig{
				SystemInstruction: &genai.Content{Role: "user", Parts: []*genai.Part{{Text: "First part."}, {Text: "Second part."}}},
				Temperature:       genai.Ptr[float32](0.5),
			},
			Tools: map[string]any{"t": 1},
		}
		before, _ := json.Marshal(req)
		llm := talker()
		for range a.mem.Model(llm).GenerateContent(middleware.WithSessionKey(t.Context(), a.key), req, false) { //nolint:errcheck // see above
		}
		if after, _ := json.Marshal(req); string(after) != string(before) {
			t.Errorf("the request was changed:\n%s\n%s", before, after)
		}
		sent := llm.last(t)
		if s := systemOf(sent); !strings.HasPrefix(s, "First part.Second part.") || !strings.Contains(s, prompt.MemoryHeading) {
			t.Errorf("instruction %.100q", s)
		}
		if *sent.Config.Temperature != 0.5 || sent.Tools["t"] != 1 || sent.Model != "talker" {
			t.Error("something of the request was lost")
		}
	})
}

func TestSessionKey(t *testing.T) {
	t.Parallel()
	bound := backends.SessionKey{App: "bound", User: "u", Session: "s"}

	// keyed runs one turn of an ADK agent and returns what its model call's context resolves to.
	keyed := func(t *testing.T, ctx context.Context) (key backends.SessionKey, ok bool) {
		t.Helper()
		llm := probe(func(ctx context.Context) { key, ok = middleware.SessionKeyFromContext(ctx) })
		a, err := llmagent.New(llmagent.Config{Name: "agent", Model: llm})
		if err != nil {
			t.Fatal(err)
		}
		r, err := runner.New(runner.Config{AppName: "adk", Agent: a, SessionService: session.InMemoryService(), AutoCreateSession: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range r.Run(ctx, "ada", "one", genai.NewContentFromText("Hello.", genai.RoleUser), agent.RunConfig{}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		return key, ok
	}

	t.Run("CTX-4 the bound key comes before the invocation's", func(t *testing.T) {
		t.Parallel()
		if key, ok := keyed(t, middleware.WithSessionKey(t.Context(), bound)); !ok || key != bound {
			t.Errorf("%v, %v", key, ok)
		}
	})
	t.Run("CTX-4 then the invocation's app, user and session", func(t *testing.T) {
		t.Parallel()
		want := backends.SessionKey{App: "adk", User: "ada", Session: "one"}
		if key, ok := keyed(t, t.Context()); !ok || key != want {
			t.Errorf("%v, %v", key, ok)
		}
		if key, ok := keyed(t, middleware.WithSessionKey(t.Context(), backends.SessionKey{App: "half"})); !ok || key != want {
			t.Errorf("an incomplete binding does not count: %v, %v", key, ok)
		}
	})
	t.Run("CTX-4 then none", func(t *testing.T) {
		t.Parallel()
		if key, ok := middleware.SessionKeyFromContext(t.Context()); ok || !key.IsZero() {
			t.Errorf("%v, %v", key, ok)
		}
	})
	t.Run("CTX-4 a binding survives contexts that hide the invocation", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(middleware.WithSessionKey(t.Context(), bound))
		defer cancel()
		if key, ok := middleware.SessionKeyFromContext(ctx); !ok || key != bound {
			t.Errorf("%v, %v", key, ok)
		}
	})

	t.Run("CTX-4 the first identity owns a binding, another one under it only reads; a fresh binding is free again", func(t *testing.T) {
		t.Parallel()
		store := inmemory.New()
		mem := newMemory(t, middleware.Config{Enabled: true, Extractive: true, MessageTokenThreshold: 50}, middleware.Deps{Store: store})
		turn := func(ctx context.Context, app, text string) *model.LLMRequest {
			llm := talker()
			a, err := llmagent.New(llmagent.Config{Name: "agent", Model: mem.Model(llm)})
			if err != nil {
				t.Fatal(err)
			}
			r, err := runner.New(runner.Config{AppName: app, Agent: a, SessionService: session.InMemoryService(), AutoCreateSession: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range r.Run(ctx, "u", "s", genai.NewContentFromText(text, genai.RoleUser), agent.RunConfig{}) {
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := mem.Flush(t.Context(), bound); err != nil {
				t.Fatal(err)
			}
			return llm.last(t)
		}
		notes := func() int {
			o, err := store.ListNotes(t.Context(), bound, backends.NoteQuery{})
			if err != nil {
				t.Fatal(err)
			}
			return len(o)
		}
		ctx := middleware.WithSessionKey(t.Context(), bound)
		turn(ctx, "outer", fact(1))
		if notes() != 1 {
			t.Fatalf("%d notes by the owner, want 1", notes())
		}
		if req := turn(ctx, "nested", fact(2)); !strings.Contains(systemOf(req), prompt.MemoryHeading) || len(req.Contents) != 1 {
			t.Error("the nested run does not read the memory")
		}
		if notes() != 1 {
			t.Error("the nested run wrote")
		}
		turn(middleware.WithSessionKey(t.Context(), bound), "nested", fact(3))
		if notes() != 2 {
			t.Errorf("%d notes: under a binding of its own the run writes", notes())
		}
	})
}

// probe is a model that looks at its context and answers.
type probe func(ctx context.Context)

func (p probe) Name() string { return "probe" }
func (p probe) GenerateContent(ctx context.Context, _ *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		p(ctx)
		yield(says("Seen."))
	}
}

// blocked is an app whose Observer waits until it is told.
func blocked(t *testing.T, opts ...appOption) (*app, func()) {
	t.Helper()
	gate := make(chan struct{})
	open := func() { close(gate) }
	a := newApp(t, talker(), append([]appOption{observedBy(observeFunc(gated(gate)))}, opts...)...)
	return a, open
}

func sentTokens(req *model.LLMRequest) int {
	total := 0
	for _, c := range req.Contents {
		total += token.Content(token.Estimator{}, c)
	}
	return total
}

func textsOf(req *model.LLMRequest) []string {
	var texts []string
	for _, c := range req.Contents {
		texts = append(texts, textOf(c))
	}
	return slices.Clip(texts)
}
