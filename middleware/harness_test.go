package middleware_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/middleware"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is a model that answers as told and remembers what it was sent.
type scripted struct {
	name   string
	answer func(n int, req *model.LLMRequest) (*model.LLMResponse, error)

	mu       sync.Mutex
	requests []*model.LLMRequest
}

func (s *scripted) Name() string { return s.name }

func (s *scripted) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		s.mu.Lock()
		n := len(s.requests)
		s.requests = append(s.requests, req)
		s.mu.Unlock()
		yield(s.answer(n, req))
	}
}

func (s *scripted) last(t *testing.T) *model.LLMRequest {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) == 0 {
		t.Fatal("the model was never called")
	}
	return s.requests[len(s.requests)-1]
}

func (s *scripted) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

func says(text string) (*model.LLMResponse, error) {
	return &model.LLMResponse{Content: genai.NewContentFromText(text, genai.RoleModel)}, nil
}

// talker answers every call with a sentence of its own.
func talker() *scripted {
	return &scripted{name: "talker", answer: func(n int, _ *model.LLMRequest) (*model.LLMResponse, error) {
		return says(fmt.Sprintf("Answer %d: noted, and I will keep it in mind for later.", n))
	}}
}

// app is an ADK application with memory.
type app struct {
	t       *testing.T
	mem     *middleware.Middleware
	store   backends.Store
	llm     *scripted
	runner  *runner.Runner
	key     backends.SessionKey
	session session.Service
}

type appOption func(*appConfig)

type appConfig struct {
	cfg         middleware.Config
	deps        middleware.Deps
	instruction string
	tools       []tool.Tool
	store       backends.Store
	sessions    session.Service
	plugin      bool // register the plugin with the runner
	bare        bool // leave the model unwrapped
}

func with(f func(*appConfig)) appOption { return f }

func newApp(t *testing.T, llm *scripted, opts ...appOption) *app {
	t.Helper()
	c := appConfig{cfg: middleware.Config{Enabled: true, Extractive: true}, instruction: "You are a helpful travel agent.", store: inmemory.New()}
	c.deps.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	for _, opt := range opts {
		opt(&c)
	}
	if c.deps.Store == nil {
		c.deps.Store = c.store
	}
	mem, err := middleware.New(c.cfg, c.deps)
	if err != nil {
		t.Fatal(err)
	}
	if err := mem.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := mem.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	agentModel := mem.Model(llm)
	if c.bare {
		agentModel = llm
	}
	var plugins runner.PluginConfig
	if c.plugin {
		p, err := mem.Plugin()
		if err != nil {
			t.Fatal(err)
		}
		plugins.Plugins = append(plugins.Plugins, p)
	}
	a, err := llmagent.New(llmagent.Config{Name: "travel", Model: agentModel, Instruction: c.instruction, Tools: c.tools})
	if err != nil {
		t.Fatal(err)
	}
	if c.sessions == nil {
		c.sessions = session.InMemoryService()
	}
	r, err := runner.New(runner.Config{AppName: "app", Agent: a, SessionService: c.sessions, AutoCreateSession: true, PluginConfig: plugins})
	if err != nil {
		t.Fatal(err)
	}
	return &app{
		t: t, mem: mem, store: c.store, llm: llm, runner: r, session: c.sessions,
		key: backends.SessionKey{App: "app", User: "user", Session: "session"},
	}
}

// say runs one turn and returns the text of the last event.
func (a *app) say(text string) string {
	a.t.Helper()
	var last string
	for e, err := range a.runner.Run(a.t.Context(), a.key.User, a.key.Session, genai.NewContentFromText(text, genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			a.t.Fatalf("turn %q: %v", text, err)
		}
		if e.Content != nil {
			last = textOf(e.Content)
		}
	}
	return last
}

// settle waits until the background is done with the session.
func (a *app) settle() {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), 10*time.Second)
	defer cancel()
	if err := a.mem.Flush(ctx, a.key); err != nil {
		a.t.Fatal(err)
	}
}

func (a *app) snapshot() *backends.Snapshot {
	a.t.Helper()
	snap, err := a.store.Load(context.Background(), a.key, backends.Stamp{})
	if err != nil {
		a.t.Fatal(err)
	}
	return snap
}

func textOf(c *genai.Content) string {
	if c == nil {
		return ""
	}
	var b strings.Builder
	for _, p := range c.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

func systemOf(req *model.LLMRequest) string {
	if req.Config == nil {
		return ""
	}
	return textOf(req.Config.SystemInstruction)
}

// fact is a user message of about 60 tokens with its own name and number.
func fact(i int) string {
	return fmt.Sprintf("Please remember that booking R%04d for Passenger%d leaves on 2024-05-%02d at gate %d. "+
		"I prefer an aisle seat and a vegetarian meal, and I decided to pay with the card ending in %04d. Do not change this plan.",
		i, i, i%28+1, i%40+1, 1000+i)
}
