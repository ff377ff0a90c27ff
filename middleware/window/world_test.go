package window_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/window"
)

// world runs real ADK agents whose models follow a script. Every text, argument and result that is said in it carries a
// mark of its own, so that the events behind a content are known without asking the package under test.
type world struct {
	t        *testing.T
	sessions session.Service

	mu     sync.Mutex
	marks  int
	script map[string][]func() *genai.Content // by agent
	calls  int
	rogue  map[string]bool // texts that callbacks put in
}

func newWorld(t *testing.T) *world {
	return &world{t: t, sessions: session.InMemoryService(), script: make(map[string][]func() *genai.Content), rogue: make(map[string]bool)}
}

var markPattern = regexp.MustCompile(`mk\d+;`)

func (w *world) mark() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.marks++
	return "mk" + strconv.Itoa(w.marks) + ";"
}

// will makes an agent give these answers before it falls back to plain texts.
func (w *world) will(agent string, answers ...func() *genai.Content) {
	w.script[agent] = append(w.script[agent], answers...)
}

func (w *world) text(s string) func() *genai.Content {
	return func() *genai.Content { return genai.NewContentFromText(s+" "+w.mark(), genai.RoleModel) }
}

func (w *world) call(names ...string) func() *genai.Content {
	return func() *genai.Content {
		c := &genai.Content{Role: genai.RoleModel}
		for _, n := range names {
			c.Parts = append(c.Parts, &genai.Part{
				FunctionCall:     &genai.FunctionCall{Name: n, Args: map[string]any{"request": w.mark()}},
				ThoughtSignature: []byte("signature"),
			})
		}
		return c
	}
}

func raw(parts ...*genai.Part) func() *genai.Content {
	return func() *genai.Content { return &genai.Content{Role: genai.RoleModel, Parts: parts} }
}

func transfer(to string) func() *genai.Content {
	return raw(&genai.Part{FunctionCall: &genai.FunctionCall{Name: "transfer_to_agent", Args: map[string]any{"agent_name": to}}})
}

type args struct {
	Request string `json:"request"`
}

func (w *world) tool(name string, long bool, opts ...func(*functiontool.Config)) tool.Tool {
	w.t.Helper()
	cfg := functiontool.Config{Name: name, Description: name, IsLongRunning: long}
	for _, o := range opts {
		o(&cfg)
	}
	tl, err := functiontool.New(cfg, func(agent.Context, args) (map[string]any, error) {
		return map[string]any{"result": w.mark()}, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return tl
}

func (w *world) agent(name string, opts ...func(*llmagent.Config)) agent.Agent {
	w.t.Helper()
	cfg := llmagent.Config{Name: name, Description: name, Model: checked{w, name}, Tools: []tool.Tool{w.tool("look", false), w.tool("slow", true)}}
	for _, o := range opts {
		o(&cfg)
	}
	a, err := llmagent.New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// must is for constructors of agents.
func must(t *testing.T) func(agent.Agent, error) agent.Agent {
	return func(a agent.Agent, err error) agent.Agent {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
}

func (w *world) run(root agent.Agent) func(parts ...*genai.Part) {
	w.t.Helper()
	r, err := runner.New(runner.Config{AppName: "app", Agent: root, SessionService: w.sessions, AutoCreateSession: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return func(parts ...*genai.Part) {
		w.t.Helper()
		if len(parts) == 0 {
			parts = []*genai.Part{{Text: "hello " + w.mark()}}
		}
		for _, err := range r.Run(w.t.Context(), "u", "s", &genai.Content{Role: genai.RoleUser, Parts: parts}, agent.RunConfig{}) {
			if err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

func (w *world) session() session.Session {
	w.t.Helper()
	got, err := w.sessions.Get(context.Background(), &session.GetRequest{AppName: "app", UserID: "u", SessionID: "s"})
	if err != nil {
		w.t.Fatal(err)
	}
	return got.Session
}

func (w *world) append(e *session.Event) {
	w.t.Helper()
	if err := w.sessions.AppendEvent(context.Background(), w.session(), e); err != nil {
		w.t.Fatal(err)
	}
}

// callID returns the id of the newest call by that name.
func (w *world) callID(name string) string {
	w.t.Helper()
	events := w.session().Events()
	for i := events.Len() - 1; i >= 0; i-- {
		if c := events.At(i).Content; c != nil {
			for _, p := range c.Parts {
				if p.FunctionCall != nil && p.FunctionCall.Name == name {
					return p.FunctionCall.ID
				}
			}
		}
	}
	w.t.Fatalf("no call of %s", name)
	return ""
}

func (w *world) response(id, name string) *genai.Part {
	return &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: id, Name: name, Response: map[string]any{"result": w.mark()}}}
}

// checked is an agent's model: it checks the mapping of every request that ADK builds for it.
type checked struct {
	w     *world
	agent string
}

func (c checked) Name() string { return "checked" }

func (c checked) GenerateContent(ctx context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		ic := ctx.(agent.InvocationContext)
		view := window.View{Agent: ic.Agent().Name(), Stream: backends.Stream{Branch: ic.Branch(), Scope: ic.IsolationScope()}}
		c.w.check(req.Contents, ic.Session().Events(), view)
		c.w.mu.Lock()
		c.w.calls++
		answer := c.w.text("answer of " + c.agent)
		if s := c.w.script[c.agent]; len(s) > 0 {
			answer, c.w.script[c.agent] = s[0], s[1:]
		}
		c.w.mu.Unlock()
		yield(&model.LLMResponse{Content: answer()}, nil)
	}
}

// check compares the sources of every content with the events whose marks it shows. A content without a mark has to have
// a source as well, unless nobody in the session said it.
func (w *world) check(contents []*genai.Content, events window.Events, view window.View) {
	owner := make(map[string]int32)
	for i := range events.Len() {
		e := events.At(i)
		if !window.StreamOf(e).VisibleFrom(view.Stream) || strings.Contains(encode(e.Content), `"adk_request_`) {
			continue
		}
		for _, m := range marksOf(window.ContentOf(e)) {
			if _, twice := owner[m]; twice {
				owner[m] = -1 // passed on, as a task's output is
			} else {
				owner[m] = int32(i)
			}
		}
	}
	sources := window.Map(contents, events, view)
	if len(sources) != len(contents) {
		w.t.Errorf("%d sources for %d contents", len(sources), len(contents))
		return
	}
	for i, c := range contents {
		want, unsure := make(map[int32]bool), false
		for _, m := range marksOf(c) {
			if at, ok := owner[m]; ok {
				want[at] = true
				unsure = unsure || at < 0
			}
		}
		got := slices.Clone(sources[i])
		if w.isRogue(c) || strings.HasPrefix(textIn(c), "Continue processing") {
			want = nil
		} else if len(marksOf(c)) == 0 || unsure {
			if len(got) == 0 {
				w.t.Errorf("%s: content %d has no source: %s", view.Agent, i, encode(c))
			}
			continue
		}
		if !slices.Equal(slices.Sorted(maps.Keys(want)), got) {
			w.t.Errorf("%s: content %d: sources %v, want %v: %s", view.Agent, i, got, slices.Sorted(maps.Keys(want)), encode(c))
		}
	}
}

func (w *world) isRogue(c *genai.Content) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return c == nil || w.rogue[textIn(c)]
}

func marksOf(c *genai.Content) []string {
	return markPattern.FindAllString(encode(c), -1)
}

func textIn(c *genai.Content) string {
	var b strings.Builder
	if c != nil {
		for _, p := range c.Parts {
			if p != nil {
				b.WriteString(p.Text)
			}
		}
	}
	return b.String()
}

func encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(raw)
}
