package adkv1_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genai"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/model"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/functiontool"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/adkv1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = backends.SessionKey{App: "app", User: "user", Session: "session"}

// scripted is a model of the first version that calls a tool at every other chance.
type scripted struct {
	mu       sync.Mutex
	requests []*model.LLMRequest
	contexts []context.Context
	tool     bool
}

func (*scripted) Name() string { return "scripted" }

func (s *scripted) GenerateContent(ctx context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	s.mu.Lock()
	s.requests, s.contexts = append(s.requests, req), append(s.contexts, ctx)
	s.mu.Unlock()
	last := req.Contents[len(req.Contents)-1]
	return func(yield func(*model.LLMResponse, error) bool) {
		if s.tool && last.Parts[0].FunctionResponse == nil {
			yield(&model.LLMResponse{Content: genai.NewContentFromFunctionCall("lookup", map[string]any{"what": "flight"}, genai.RoleModel)}, nil)
			return
		}
		yield(&model.LLMResponse{Content: genai.NewContentFromText("- I noted the booking and will keep it.", genai.RoleModel)}, nil)
	}
}

func (s *scripted) last() *model.LLMRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[len(s.requests)-1]
}

type google struct{ *scripted }

func (google) GetGoogleLLMVariant() genai.Backend { return genai.BackendVertexAI }

func newMemory(t *testing.T, cfg middleware.Config, store backends.Store) *middleware.Middleware {
	t.Helper()
	m, err := middleware.New(cfg, middleware.Deps{Store: store, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := m.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return m
}

func newRunner(t *testing.T, llm model.LLM, tools ...tool.Tool) *runner.Runner {
	t.Helper()
	a, err := llmagent.New(llmagent.Config{Name: "travel", Model: llm, Instruction: "You are a travel agent.", Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: key.App, Agent: a, SessionService: session.InMemoryService(), AutoCreateSession: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func say(t *testing.T, r *runner.Runner, text string) {
	t.Helper()
	for _, err := range r.Run(t.Context(), key.User, key.Session, genai.NewContentFromText(text, genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func fact(i int) string {
	return fmt.Sprintf("Please remember that booking R%04d for Passenger%d leaves on 2024-05-%02d at gate %d, and that I prefer an aisle seat.", i, i, i%28+1, i%40+1)
}

func systemOf(req *model.LLMRequest) (text string) {
	if req.Config != nil && req.Config.SystemInstruction != nil {
		for _, p := range req.Config.SystemInstruction.Parts {
			text += p.Text
		}
	}
	return text
}

func TestRunner(t *testing.T) {
	t.Parallel()
	t.Run("OPS-6 on the first version's runner old turns become notes and leave the window, pairs whole", func(t *testing.T) {
		t.Parallel()
		store := inmemory.New()
		mem := newMemory(t, middleware.Config{Enabled: true, Extractive: true, MessageTokenThreshold: 200, MaxMessageTokenBudget: 600}, store)
		var seen backends.SessionKey
		lookup, err := functiontool.New(functiontool.Config{Name: "lookup", Description: "looks up"},
			func(ctx tool.Context, _ struct {
				What string `json:"what"`
			}) (map[string]any, error) {
				seen, _ = adkv1.SessionKeyFromContext(ctx)
				return map[string]any{"flight": "HAT271 leaves at ten"}, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		llm := &scripted{tool: true}
		r := newRunner(t, adkv1.Model(mem, llm), lookup)
		for i := range 60 {
			say(t, r, fact(i))
			if err := mem.Flush(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
		req := llm.last()
		system := systemOf(req)
		if !strings.HasPrefix(system, "You are a travel agent.") || !strings.Contains(system, "## Conversation Memory") || !strings.Contains(system, "R0059") && !strings.Contains(system, "R0050") {
			t.Errorf("the instruction is %.600q", system)
		}
		if n := len(req.Contents); n > 60 || n < 4 {
			t.Errorf("%d of 240 contents were sent", n)
		}
		open := 0
		for _, c := range req.Contents {
			for _, p := range c.Parts {
				if p.FunctionCall != nil {
					open++
				}
				if p.FunctionResponse != nil {
					open--
				}
			}
			if open < 0 || open > 1 {
				t.Fatal("a call and its response were separated")
			}
		}
		if open != 0 {
			t.Error("a call has no response")
		}
		if seen != key {
			t.Errorf("the tool saw the key %v", seen)
		}
		messages, err := store.ListMessages(t.Context(), key, backends.MessageQuery{Limit: 1000})
		if err != nil || len(messages) < 200 || messages[0].Author != "user" || messages[1].Author != "travel" || messages[0].InvocationID == "" {
			t.Errorf("%d messages, %v", len(messages), err)
		}
	})
	t.Run("OPS-6 the agent's own model writes the notes, and sees the context it always had", func(t *testing.T) {
		t.Parallel()
		store := inmemory.New()
		mem := newMemory(t, middleware.Config{Enabled: true, MessageTokenThreshold: 200}, store)
		llm := &scripted{}
		r := newRunner(t, adkv1.Model(mem, llm))
		for i := range 10 {
			say(t, r, fact(i))
			if err := mem.Flush(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
		notes, err := store.ListRecentObservations(t.Context(), key, 0)
		if err != nil || len(notes) == 0 || notes[0].Writer != "scripted" {
			t.Errorf("%+v, %v", notes, err)
		}
		if _, ok := llm.contexts[0].(agent.InvocationContext); !ok {
			t.Errorf("the model was called with a %T", llm.contexts[0])
		}
	})
	t.Run("OPS-6 with nothing to add the request is the agent's own", func(t *testing.T) {
		t.Parallel()
		mem := newMemory(t, middleware.Config{Enabled: true}, inmemory.New())
		llm := &scripted{}
		req := &model.LLMRequest{Contents: []*genai.Content{genai.NewContentFromText("hi", genai.RoleUser)}}
		for _, err := range adkv1.Model(mem, llm).GenerateContent(t.Context(), req, false) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if llm.last() != req {
			t.Error("the request was replaced")
		}
	})
}

func TestModel(t *testing.T) {
	t.Parallel()
	t.Run("OPS-6 capabilities are kept and none is invented", func(t *testing.T) {
		t.Parallel()
		mem := newMemory(t, middleware.Config{Enabled: true}, inmemory.New())
		plain, vertex := adkv1.Model(mem, &scripted{}), adkv1.Model(mem, google{&scripted{}})
		if _, ok := plain.(interface{ GetGoogleLLMVariant() genai.Backend }); ok {
			t.Error("a variant was invented")
		}
		if v, ok := vertex.(interface{ GetGoogleLLMVariant() genai.Backend }); !ok || v.GetGoogleLLMVariant() != genai.BackendVertexAI {
			t.Error("the variant is lost")
		}
		if plain.Name() != "scripted" || adkv1.Model(mem, plain) != plain {
			t.Error("the name is lost, or a model was wrapped twice")
		}
	})
	t.Run("OPS-6 CFG-2 with memory off the model is itself", func(t *testing.T) {
		t.Parallel()
		mem, err := middleware.New(middleware.Config{}, middleware.Deps{})
		llm := model.LLM(&scripted{})
		if err != nil || adkv1.Model(mem, llm) != llm {
			t.Error("it was wrapped")
		}
	})
	t.Run("OPS-6 who does not import this package does not link the first version", func(t *testing.T) {
		t.Parallel()
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "..", "../middlewarefx", "../../backends/...", "../../retriever/...").Output()
		if err != nil {
			t.Skipf("no go command to ask: %v", err)
		}
		for path := range strings.Lines(string(out)) {
			if strings.HasPrefix(path, "google.golang.org/adk/") && !strings.HasPrefix(path, "google.golang.org/adk/v2") {
				t.Errorf("%s is linked", strings.TrimSpace(path))
			}
		}
	})
}
