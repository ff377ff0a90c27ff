package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/agent/workflowagents/parallelagent"
	"google.golang.org/adk/v2/agent/workflowagents/sequentialagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/observer"
	"github.com/adkmemory/adkmemory/middleware/reflector"
	"github.com/adkmemory/adkmemory/middleware/window"
)

// universe is a session with random agents, two middlewares on one store, and everything that goes wrong. Each message
// carries a mark, each note a name, so that what a prompt covers is known without asking the library.
type universe struct {
	key          backends.SessionKey
	sessionsSeen int
	cfg          middleware.Config
	clean        backends.Store // without faults
	store        backends.Store // what the middlewares get
	sessions     session.Service
	replicas     []*replica
	shape        string // of the agent tree
	brief        bool   // whether sessions are short, as most are: the work of ADK grows with the square of their length
	plugin       bool   // whether memory comes by the plugin

	dice    *dice
	faults  atomic.Int64 // percent of store and observer calls that fail
	gate    *gate        // closed, the Observer works on nothing
	marks   atomic.Int64
	notes   atomic.Int64
	calls   atomic.Int64
	covers  sync.Map // note name → []string of marks
	mu      sync.Mutex
	pending []string // ids of long-running calls

	turnstile chan struct{} // lets one call at a time from ADK's request to the model's; guards what follows
	raw       *rawCall
	problem   []string
}

// replica is one process: a middleware and a runner.
type replica struct {
	mem    *middleware.Middleware
	runner *runner.Runner
}

var (
	markPattern = regexp.MustCompile(`mk\d+;`)
	notePattern = regexp.MustCompile(`(?:OBS|REF)\d+;`)
	errRandom   = errors.New("random fault")
)

// words is a text of about the given number of tokens with a mark of its own.
func (u *universe) words(tokens int) string {
	return "mk" + strconv.FormatInt(u.marks.Add(1), 10) + "; " + strings.Repeat("word ", max(1, tokens*4/5))
}

// Observe implements observer.Observer: the note's name stands for the marks of its messages.
func (u *universe) Observe(ctx context.Context, req observer.Request) (observer.Note, error) {
	if err := u.gate.wait(ctx); err != nil {
		return observer.Note{}, err
	}
	var marks []string
	source := 0
	for _, m := range req.Messages {
		marks = append(marks, markPattern.FindAllString(encode(m.Content), -1)...)
		source += m.Tokens
	}
	return u.note("OBS", marks, source)
}

// Reflect implements reflector.Reflector.
func (u *universe) Reflect(_ context.Context, req reflector.Request) (observer.Note, error) {
	var marks []string
	source := 0
	add := func(n backends.Note) {
		marks = append(marks, u.marksOf(n.Text)...)
		source += n.Tokens
	}
	for _, o := range req.Observations {
		add(o.Note)
	}
	for _, r := range req.Reflections {
		add(r.Note)
	}
	return u.note("REF", marks, source)
}

func (u *universe) note(kind string, marks []string, source int) (observer.Note, error) {
	if u.dice.percent(int(u.faults.Load())) {
		switch u.dice.n(3) {
		case 0:
			return observer.Note{}, errRandom
		case 1:
			return observer.Note{Text: ""}, nil
		default:
			panic("random panic")
		}
	}
	name := kind + strconv.FormatInt(u.notes.Add(1), 10) + ";"
	u.covers.Store(name, marks)
	return observer.Note{Text: name + strings.Repeat(" note", min(source/8, 40)), Writer: "fake"}, nil
}

// marksOf expands the names of notes in a text to the marks of the messages that they stand for.
func (u *universe) marksOf(text string) []string {
	var marks []string
	for _, name := range notePattern.FindAllString(text, -1) {
		if m, ok := u.covers.Load(name); ok {
			marks = append(marks, m.([]string)...)
		}
	}
	return marks
}

// start makes a new process.
func (u *universe) start(i int) {
	mem, err := middleware.New(u.cfg, middleware.Deps{
		Store: u.store, Observer: u, Reflector: u, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		u.fatalf("%v", err)
	}
	if err := mem.Start(context.Background()); err != nil {
		u.fatalf("%v", err)
	}
	rep := &replica{mem: mem}
	cfg := runner.Config{AppName: u.key.App, Agent: u.tree(rep), SessionService: u.sessions, AutoCreateSession: true}
	if u.plugin {
		first, err := plugin.New(plugin.Config{Name: "first", BeforeModelCallback: func(ctx agent.Context, req *model.LLMRequest) (*model.LLMResponse, error) {
			u.before(rep, req)
			return nil, nil
		}})
		if err != nil {
			u.fatalf("%v", err)
		}
		p, err := mem.Plugin()
		if err != nil {
			u.fatalf("%v", err)
		}
		cfg.PluginConfig.Plugins = []*plugin.Plugin{first, p}
	}
	if rep.runner, err = runner.New(cfg); err != nil {
		u.fatalf("%v", err)
	}
	u.replicas[i] = rep
}

// stop ends a process; short, it is not given the time to finish. While the gate is closed it never does.
func (u *universe) stop(i int, short bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if short {
		cancel()
	}
	return u.replicas[i].mem.Stop(ctx)
}

// tree is the universe's agents.
func (u *universe) tree(rep *replica) agent.Agent {
	leaf := func(name string, subs ...agent.Agent) agent.Agent {
		inner := model.LLM(innerModel{u, rep, name})
		if !u.plugin {
			inner = outerModel{u, rep, rep.mem.Model(inner)}
		}
		cfg := llmagent.Config{Name: name, Description: name, Model: inner, SubAgents: subs, Tools: []tool.Tool{u.tool("look", false), u.tool("slow", true)}}
		if name == "task" {
			cfg.Mode = llmagent.ModeTask
		}
		a, err := llmagent.New(cfg)
		if err != nil {
			u.fatalf("%v", err)
		}
		return a
	}
	composed := func(a agent.Agent, err error) agent.Agent {
		if err != nil {
			u.fatalf("%v", err)
		}
		return a
	}
	switch u.shape {
	case "solo":
		return leaf("root")
	case "transfer":
		return leaf("root", leaf("helper"))
	case "task":
		return leaf("root", leaf("task"))
	}
	fan := composed(parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "fan", SubAgents: []agent.Agent{leaf("left"), leaf("right")}}}))
	return composed(sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{Name: "seq", SubAgents: []agent.Agent{leaf("plan"), fan, leaf("merge")}}}))
}

func (u *universe) tool(name string, long bool) tool.Tool {
	tl, err := functiontool.New(functiontool.Config{Name: name, Description: name, IsLongRunning: long},
		func(ctx agent.Context, _ map[string]any) (map[string]any, error) {
			if long {
				u.mu.Lock()
				u.pending = append(u.pending, ctx.FunctionCallID())
				u.mu.Unlock()
				if u.dice.percent(50) {
					return nil, nil
				}
			}
			return map[string]any{"result": u.words(u.dice.n(80))}, nil
		})
	if err != nil {
		u.fatalf("%v", err)
	}
	return tl
}

// answer is what an agent's model says.
func (u *universe) answer(name string) *genai.Content {
	c := &genai.Content{Role: genai.RoleModel}
	call := func(f string, args map[string]any) {
		args["mark"] = u.words(1)
		c.Parts = append(c.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{Name: f, Args: args}, ThoughtSignature: []byte(f)})
	}
	switch p := u.dice.n(100); {
	case p < 30:
		for range 1 + u.dice.n(2) {
			call("look", map[string]any{})
		}
	case p < 36 && u.shape != "task": // a task that waits for a long-running call never ends
		call("slow", map[string]any{})
		if u.dice.percent(30) {
			call("look", map[string]any{})
		}
	case p < 45 && u.shape == "transfer":
		to := map[string]string{"root": "helper", "helper": "root"}[name]
		call("transfer_to_agent", map[string]any{"agent_name": to})
	case p < 55 && u.shape == "task" && name == "root":
		call("task", map[string]any{"request": u.words(20)})
	case p < 70 && name == "task":
		call("finish_task", map[string]any{"result": "done"})
	default:
		c.Parts = append(c.Parts, &genai.Part{Text: u.words(1 + u.dice.n(60))})
	}
	return c
}

// turn lets a process run one turn.
func (u *universe) turn(i int, parts ...*genai.Part) {
	msg := &genai.Content{Role: genai.RoleUser, Parts: parts}
	for _, err := range u.replicas[i].runner.Run(context.Background(), u.key.User, u.key.Session, msg, agent.RunConfig{}) {
		if err != nil {
			u.fatalf("turn: %v", err)
		}
	}
	if len(u.problem) > 0 {
		u.fatalf("%s", strings.Join(u.problem, "\n"))
	}
}

// innerModel is the model beneath memory: it checks what it is sent.
type innerModel struct {
	u    *universe
	rep  *replica
	name string
}

func (m innerModel) Name() string { return "inner" }

func (m innerModel) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		m.u.after(m.name, req)
		yield(&model.LLMResponse{Content: m.u.answer(m.name)}, nil)
	}
}

// outerModel stands before memory: it sees what ADK built.
type outerModel struct {
	u     *universe
	rep   *replica
	inner model.LLM
}

func (m outerModel) Name() string { return m.inner.Name() }

func (m outerModel) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		m.u.before(m.rep, req)
		ic := ctx.(agent.InvocationContext)
		m.u.raw.src = window.Map(req.Contents, ic.Session().Events(), window.View{Agent: ic.Agent().Name(), Stream: backends.Stream{Branch: ic.Branch(), Scope: ic.IsolationScope()}})
		m.u.raw.ev = ic.Session().Events()
		m.inner.GenerateContent(ctx, req, stream)(yield)
	}
}

// fail notes a broken rule; the turn's end reports it.
func (u *universe) fail(format string, args ...any) {
	u.problem = append(u.problem, fmt.Sprintf("%s, plugin %v: ", u.shape, u.plugin)+fmt.Sprintf(format, args...))
}

// fatalf ends a run; the caller of inBubble gets to see it.
func (u *universe) fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
