package middlewarefx_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"
	"go.uber.org/goleak"
	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/sqlite"
	"github.com/adkmemory/adkmemory/backends/sqlite/sqlitefx"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/middlewarefx"
	"github.com/adkmemory/adkmemory/retriever"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = backends.SessionKey{App: "app", User: "user", Session: "session"}

// agentModel answers, and remembers the last system instruction.
type agentModel struct {
	mu     sync.Mutex
	system string
}

func (*agentModel) Name() string { return "agent" }

func (m *agentModel) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	m.mu.Lock()
	m.system = ""
	if req.Config != nil && req.Config.SystemInstruction != nil {
		for _, p := range req.Config.SystemInstruction.Parts {
			m.system += p.Text
		}
	}
	m.mu.Unlock()
	return func(yield func(*model.LLMResponse, error) bool) {
		yield(&model.LLMResponse{Content: genai.NewContentFromText("Noted.", genai.RoleModel)}, nil)
	}
}

// talk runs turns of a real agent with memory.
func talk(t *testing.T, mem *middleware.Middleware, llm model.LLM, turns ...string) {
	t.Helper()
	a, err := llmagent.New(llmagent.Config{Name: "agent", Model: mem.Model(llm), Instruction: "Help."})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: key.App, Agent: a, SessionService: session.InMemoryService(), AutoCreateSession: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range turns {
		for _, err := range r.Run(t.Context(), key.User, key.Session, genai.NewContentFromText(text, genai.RoleUser), agent.RunConfig{}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func facts(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("Please remember that booking R%04d for Passenger%d leaves on 2024-05-%02d and that I prefer an aisle seat.", i, i, i%28+1))
	}
	return out
}

var quiet = fx.Options(fx.NopLogger, fx.Supply(slog.New(slog.DiscardHandler)))

func TestModule(t *testing.T) {
	t.Parallel()
	t.Run("OPS-3 a supplied config and two modules are a working app", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "memory.db")
		var mem *middleware.Middleware
		var store backends.Store
		app := fxtest.New(t, quiet,
			fx.Supply(middleware.Config{Enabled: true, Extractive: true, MessageTokenThreshold: 100}, sqlitefx.Config{Path: path}),
			sqlitefx.Module, middlewarefx.Module,
			fx.Populate(&mem, &store),
		)
		app.RequireStart()
		llm := new(agentModel)
		talk(t, mem, llm, facts(12)...)
		if err := mem.Flush(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		talk(t, mem, llm, "And now?")
		if !strings.Contains(llm.system, "## Conversation Memory") || !strings.Contains(llm.system, "R0001") {
			t.Errorf("the prompt is %q", llm.system)
		}
		app.RequireStop()
		if _, err := store.Load(t.Context(), key, backends.Stamp{}); !errors.Is(err, backends.ErrClosed) {
			t.Errorf("the store is open after the application has stopped: %v", err)
		}
	})
	t.Run("OPS-3 layers join through the value group", func(t *testing.T) {
		t.Parallel()
		var mem *middleware.Middleware
		app := fxtest.New(t, quiet,
			fx.Supply(middleware.Config{Enabled: true, Extractive: true}, sqlitefx.Config{Path: filepath.Join(t.TempDir(), "memory.db")}),
			sqlitefx.Module, middlewarefx.Module,
			fx.Provide(middlewarefx.AsLayer(func() layer { return layer{"user-knowledge", "likes green tea"} }),
				middlewarefx.AsLayer(func() layer { return layer{"agent-learnings", "restart the router"} })),
			fx.Populate(&mem),
		)
		app.RequireStart()
		defer app.RequireStop()
		llm := new(agentModel)
		talk(t, mem, llm, "which tea, and what about the router?")
		if !strings.Contains(llm.system, "likes green tea") || !strings.Contains(llm.system, "restart the router") {
			t.Errorf("the prompt is %q", llm.system)
		}
	})
	t.Run("OPS-3 CFG-2 without a config memory is off and needs no store", func(t *testing.T) {
		t.Parallel()
		var mem *middleware.Middleware
		app := fxtest.New(t, quiet, middlewarefx.Module, fx.Populate(&mem))
		app.RequireStart()
		llm := new(agentModel)
		if mem.Enabled() || mem.Model(llm) != model.LLM(llm) {
			t.Error("memory is on")
		}
		app.RequireStop()
	})
	t.Run("OPS-3 a bad config fails the application with every fault", func(t *testing.T) {
		t.Parallel()
		app := fx.New(quiet, fx.Supply(middleware.Config{Enabled: true, Workers: -1, QueueLimit: -1}), middlewarefx.Module)
		if err := app.Err(); !errors.Is(err, middleware.ErrInvalidConfig) || !strings.Contains(err.Error(), "workers") || !strings.Contains(err.Error(), "queueLimit") {
			t.Error(err)
		}
	})
}

// layer finds one thing, always.
type layer struct{ name, text string }

func (l layer) Name() string { return l.name }
func (l layer) Retrieve(context.Context, retriever.Query) ([]retriever.Item, error) {
	return []retriever.Item{{Key: "k", Text: l.text, Score: 1}}, nil
}

// slowModel writes a note once it is let.
type slowModel struct {
	asked chan struct{}
	let   chan struct{}
}

func (slowModel) Name() string { return "slow" }

func (m slowModel) GenerateContent(ctx context.Context, _ *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		m.asked <- struct{}{}
		select {
		case <-m.let:
			yield(&model.LLMResponse{Content: genai.NewContentFromText("- The slow note.", genai.RoleModel)}, nil)
		case <-ctx.Done():
			yield(nil, ctx.Err())
		}
	}
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	t.Run("BUF-2 stopping the application completes the observation in flight before the store closes, and the WaitGroup counts it", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "memory.db")
		slow := slowModel{asked: make(chan struct{}, 10), let: make(chan struct{})}
		wg := new(sync.WaitGroup)
		var mem *middleware.Middleware
		app := fxtest.New(t, quiet,
			fx.Supply(middleware.Config{Enabled: true, MessageTokenThreshold: 100}, sqlitefx.Config{Path: path}),
			fx.Supply(fx.Annotate(slow, fx.As(new(model.LLM))), wg),
			sqlitefx.Module, middlewarefx.Module, fx.Populate(&mem),
		)
		app.RequireStart()
		talk(t, mem, new(agentModel), facts(8)...)
		<-slow.asked
		counted := make(chan struct{})
		go func() { wg.Wait(); close(counted) }()
		stopped := make(chan error, 1)
		go func() { stopped <- app.Stop(context.Background()) }()
		select {
		case <-counted:
			t.Error("the WaitGroup is done while an observation is in flight")
		case err := <-stopped:
			t.Errorf("stopped while an observation is in flight: %v", err)
		case slow.let <- struct{}{}:
		}
		close(slow.let)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		<-counted
		store, err := sqlite.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		snap, err := store.Load(t.Context(), key, backends.Stamp{})
		if err != nil || len(snap.Observations) == 0 || snap.Observations[0].Text != "- The slow note." {
			t.Errorf("%+v, %v", snap, err)
		}
	})
}
