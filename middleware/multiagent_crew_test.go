package middleware_test

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/middleware"
)

// crew is a set of agents that share a memory whose notes name the messages that they cover (see universe).
type crew struct {
	*universe
	test *testing.T
	mem  *middleware.Middleware

	mu     sync.Mutex
	sent   map[string][]*model.LLMRequest // by agent
	script map[string][]*genai.Content
	first  map[string]func() // what happens before an agent's model answers
}

func newCrew(t *testing.T, change func(*middleware.Config)) *crew {
	t.Helper()
	u := &universe{
		key:   backends.SessionKey{App: "app", User: "user", Session: "session"},
		clean: inmemory.New(), sessions: session.InMemoryService(), gate: &gate{open: make(chan struct{})},
		dice: &dice{r: rand.New(rand.NewPCG(1, 1))},
	}
	u.store = u.clean
	u.gate.set(true)
	c := &crew{universe: u, test: t, sent: make(map[string][]*model.LLMRequest), script: make(map[string][]*genai.Content), first: make(map[string]func())}
	cfg := middleware.Config{Enabled: true, MessageTokenThreshold: 30, MaxMessageTokenBudget: 200, HardMessageTokenLimit: 2000, FailuresBeforeFallback: -1}
	if change != nil {
		change(&cfg)
	}
	c.mem = c.process(cfg)
	return c
}

// process starts a middleware on the crew's store.
func (c *crew) process(cfg middleware.Config) *middleware.Middleware {
	c.test.Helper()
	mem, err := middleware.New(cfg, middleware.Deps{
		Store: c.store, Observer: c.universe, Reflector: c.universe, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		c.test.Fatal(err)
	}
	if err := mem.Start(context.Background()); err != nil {
		c.test.Fatal(err)
	}
	c.test.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := mem.Stop(ctx); err != nil {
			c.test.Error(err)
		}
	})
	return mem
}

// member is an agent's model beneath memory.
type member struct {
	c    *crew
	name string
}

func (m member) Name() string { return m.name }

func (m member) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		if f := m.c.first[m.name]; f != nil {
			f()
		}
		m.c.mu.Lock()
		m.c.sent[m.name] = append(m.c.sent[m.name], req)
		answer := genai.NewContentFromText(m.c.words(20), genai.RoleModel)
		if s := m.c.script[m.name]; len(s) > 0 {
			answer, m.c.script[m.name] = s[0], s[1:]
		}
		m.c.mu.Unlock()
		yield(&model.LLMResponse{Content: answer}, nil)
	}
}

func (c *crew) agent(name string, opts ...func(*llmagent.Config)) agent.Agent {
	c.test.Helper()
	cfg := llmagent.Config{Name: name, Description: name, Model: c.mem.Model(member{c, name})}
	for _, o := range opts {
		o(&cfg)
	}
	return c.made(llmagent.New(cfg))
}

func (c *crew) made(a agent.Agent, err error) agent.Agent {
	c.test.Helper()
	if err != nil {
		c.test.Fatal(err)
	}
	return a
}

// will makes a model answer with calls of these functions.
func (c *crew) will(name string, calls ...*genai.FunctionCall) {
	content := &genai.Content{Role: genai.RoleModel}
	for _, f := range calls {
		content.Parts = append(content.Parts, &genai.Part{FunctionCall: f})
	}
	c.script[name] = append(c.script[name], content)
}

// talk returns a func that says something to the root agent and waits until the background has settled.
func (c *crew) talk(root agent.Agent) func(ctx context.Context, parts ...*genai.Part) {
	c.test.Helper()
	r, err := runner.New(runner.Config{AppName: c.key.App, Agent: root, SessionService: c.sessions, AutoCreateSession: true})
	if err != nil {
		c.test.Fatal(err)
	}
	return func(ctx context.Context, parts ...*genai.Part) {
		c.test.Helper()
		if len(parts) == 0 {
			parts = []*genai.Part{{Text: c.words(40)}}
		}
		for _, err := range r.Run(ctx, c.key.User, c.key.Session, &genai.Content{Role: genai.RoleUser, Parts: parts}, agent.RunConfig{}) {
			if err != nil {
				c.test.Fatal(err)
			}
		}
		c.settle()
	}
}

func (c *crew) settle() {
	c.test.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := c.mem.Flush(ctx, c.key); err != nil {
		c.test.Fatal(err)
	}
}

// last is the newest request that an agent's model got.
func (c *crew) last(name string) *model.LLMRequest {
	c.test.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sent[name]) == 0 {
		c.test.Fatalf("%s was never asked", name)
	}
	return c.sent[name][len(c.sent[name])-1]
}

// noted is what the notes in the agent's last prompt cover, shown what its window shows.
func (c *crew) noted(name string) []string { return c.marksOf(systemOf(c.last(name))) }

func (c *crew) shown(name string) []string {
	return markPattern.FindAllString(encode(c.last(name).Contents), -1)
}

// events are those of the crew's session.
func (c *crew) events() []*session.Event {
	c.test.Helper()
	got, err := c.sessions.Get(context.Background(), &session.GetRequest{AppName: c.key.App, UserID: c.key.User, SessionID: c.key.Session})
	if err != nil {
		c.test.Fatal(err)
	}
	return slices.Collect(got.Session.Events().All())
}

func (c *crew) eventIDs() []string {
	var ids []string
	for _, e := range c.events() {
		ids = append(ids, e.ID)
	}
	return ids
}

// saidBy returns the marks of the messages of an agent (or "user").
func (c *crew) saidBy(author string) []string {
	c.test.Helper()
	var marks []string
	for _, e := range c.events() {
		if e.Author == author {
			marks = append(marks, markPattern.FindAllString(encode(e.Content), -1)...)
		}
	}
	return marks
}

func (c *crew) notes() []backends.StoredNote {
	c.test.Helper()
	notes, err := c.store.ListNotes(context.Background(), c.key, backends.NoteQuery{Limit: backends.MaxListItems})
	if err != nil {
		c.test.Fatal(err)
	}
	return notes
}

// covered reports how many of the messages stand in the agent's prompt, in a note or in the window.
func (c *crew) covered(name string, marks []string) int {
	all := append(c.noted(name), c.shown(name)...)
	n := 0
	for _, m := range marks {
		if slices.Contains(all, m) {
			n++
		}
	}
	return n
}

func overlap(a, b []string) []string {
	var both []string
	for _, m := range a {
		if slices.Contains(b, m) {
			both = append(both, strings.TrimSuffix(m, ";"))
		}
	}
	return both
}

// checkStored is checkArchive for a test without a bubble.
func (c *crew) checkStored() {
	c.test.Helper()
	defer func() {
		if r := recover(); r != nil {
			c.test.Error(r)
		}
	}()
	c.checkArchive()
}
