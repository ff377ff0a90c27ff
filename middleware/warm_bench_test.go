package middleware_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/backends/pgtest"
	"github.com/adkmemory/adkmemory/backends/postgres"
	"github.com/adkmemory/adkmemory/backends/sqlite"
	"github.com/adkmemory/adkmemory/middleware"
)

// fixedEvents is a session's history that can be cut short.
type fixedEvents []*session.Event

func (e fixedEvents) Len() int { return len(e) }
func (e fixedEvents) At(i int) *session.Event {
	if i < 0 || i >= len(e) {
		return nil
	}
	return e[i]
}
func (e fixedEvents) All() iter.Seq[*session.Event] {
	return func(yield func(*session.Event) bool) {
		for _, ev := range e {
			if !yield(ev) {
				return
			}
		}
	}
}

type fixedSession struct {
	session.Session
	key    backends.SessionKey
	events session.Events
}

func (s *fixedSession) ID() string             { return s.key.Session }
func (s *fixedSession) AppName() string        { return s.key.App }
func (s *fixedSession) UserID() string         { return s.key.User }
func (s *fixedSession) Events() session.Events { return s.events }

// callContext is the context of a model call, as an ADK runner makes it.
type callContext struct {
	*agent.StrictContextMock
	context.Context
	session *fixedSession
}

func (c callContext) Session() session.Session         { return c.session }
func (c callContext) Branch() string                   { return "" }
func (c callContext) IsolationScope() string           { return "" }
func (c callContext) InvocationID() string             { return "invocation" }
func (c callContext) Agent() agent.Agent               { return nil }
func (c callContext) UserContent() *genai.Content      { return nil }
func (c callContext) AppName() string                  { return c.session.key.App }
func (c callContext) UserID() string                   { return c.session.key.User }
func (c callContext) SessionID() string                { return c.session.key.Session }
func (c callContext) Value(key any) any                { return c.Context.Value(key) }
func (c callContext) Done() <-chan struct{}            { return c.Context.Done() }
func (c callContext) Err() error                       { return c.Context.Err() }
func (c callContext) Deadline() (d time.Time, ok bool) { return c.Context.Deadline() }

// silent is a model that answers nothing.
type silent struct{ sent *model.LLMRequest }

func (s *silent) Name() string { return "silent" }
func (s *silent) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	s.sent = req
	return func(func(*model.LLMResponse, error) bool) {}
}

// sqliteStore and postgresStore open a store in a new place; the latter on the server that the tests are given, else on
// one of its own.
func sqliteStore(tb testing.TB) *sqlite.Store {
	tb.Helper()
	store, err := sqlite.Open(tb.Context(), tb.TempDir()+"/memory.db")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	return store
}

func postgresStore(tb testing.TB) *postgres.Store {
	tb.Helper()
	var dsn string
	if os.Getenv(pgtest.Env) != "" {
		dsn = pgtest.DSN(tb)
	} else {
		cluster, err := pgtest.NewCluster(context.Background())
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() {
			if err := cluster.Remove(); err != nil {
				tb.Error(err)
			}
		})
		dsn = cluster.DSN()
	}
	store, err := postgres.Open(tb.Context(), dsn)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	return store
}

var stores = []struct {
	name string
	open func(testing.TB) backends.Store
}{
	{"inmemory", func(testing.TB) backends.Store { return inmemory.New() }},
	{"sqlite", func(tb testing.TB) backends.Store { return sqliteStore(tb) }},
	{"postgres", func(tb testing.TB) backends.Store { return postgresStore(tb) }},
}

// conversation is n events of user and agent in turn, one a second. With tools, of every six the third is a call and the
// fourth its response.
func conversation(n int, tools bool) fixedEvents {
	events := make(fixedEvents, n)
	for i := range events {
		role, author := genai.RoleUser, "user"
		if i%2 == 1 {
			role, author = genai.RoleModel, ""
		}
		e := &session.Event{ID: fmt.Sprintf("e%06d", i), Author: author, Timestamp: start0.Add(time.Duration(i) * time.Second)}
		e.Content = genai.NewContentFromText(
			fmt.Sprintf("Message %d says something about the trip to Lisbon in May, and then some more about it.", i), genai.Role(role))
		id := fmt.Sprint("call-", i/6)
		switch {
		case tools && i%6 == 3:
			e.Content.Parts = []*genai.Part{{FunctionCall: &genai.FunctionCall{ID: id, Name: "look", Args: map[string]any{"flight": "TP1234"}}}}
		case tools && i%6 == 4:
			e.Author = ""
			e.Content.Parts = []*genai.Part{{FunctionResponse: &genai.FunctionResponse{
				ID: id, Name: "look", Response: map[string]any{"flight": fmt.Sprintf("TP%d", i), "gate": "B12", "on time": true},
			}}}
		}
		events[i] = e
	}
	return events
}

// requestOf is the request that ADK builds from a session's events.
func requestOf(events fixedEvents) *model.LLMRequest {
	contents := make([]*genai.Content, len(events))
	for i, e := range events {
		c := *e.Content
		contents[i] = &c
	}
	return &model.LLMRequest{
		Model: "silent", Contents: contents,
		Config: &genai.GenerateContentConfig{SystemInstruction: genai.NewContentFromText("You are a travel agent.", genai.RoleUser)},
	}
}

// warm is a session with n observed messages before a window of 40, five reflections and twenty observations, after its
// first call.
type warm struct {
	mem *middleware.Middleware
	llm model.LLM
	in  *silent
	ctx context.Context
	req *model.LLMRequest
}

func newWarm(tb testing.TB, store backends.Store, n int, tools bool, opts ...appOption) warm {
	tb.Helper()
	events := conversation(n+40, tools)
	key := backends.SessionKey{App: "app", User: "user", Session: "session"}
	remember(tb, store, key, events[:n])
	c := appConfig{
		cfg:  middleware.Config{Enabled: true, Extractive: true, MessageTokenThreshold: 2000, MaxMessageTokenBudget: 1200},
		deps: middleware.Deps{Store: store, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))},
	}
	for _, opt := range opts {
		opt(&c)
	}
	mem, err := middleware.New(c.cfg, c.deps)
	if err != nil {
		tb.Fatal(err)
	}
	in := &silent{}
	w := warm{mem: mem, llm: mem.Model(in), in: in, req: requestOf(events)}
	w.ctx = callContext{Context: tb.Context(), session: &fixedSession{key: key, events: events}}
	w.call()
	if got := len(in.sent.Contents); got < 40 || got > 48 {
		tb.Fatalf("%d contents were sent", got)
	}
	if got := strings.Count(systemOf(in.sent), "booked flight"); got != 25 {
		tb.Fatalf("%d notes were sent", got)
	}
	return w
}

func (w warm) call() {
	for range w.llm.GenerateContent(w.ctx, w.req, false) {
	}
}

var start0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// remember stores 25 notes over the events, of which the first five are condensed into a reflection each.
func remember(tb testing.TB, store backends.Store, key backends.SessionKey, events fixedEvents) {
	tb.Helper()
	ctx, n := tb.Context(), len(events)
	note := func(id string, start, end int) backends.Note {
		return backends.Note{
			ID: id, Text: fmt.Sprintf("Note %s: the family decided on Lisbon and booked flight TP%s.", id, id), Tokens: 20, Writer: "test",
			Range:     backends.Range{Start: int64(start), End: int64(end), StartID: events[start].ID, EndID: events[end].ID},
			CreatedAt: start0,
		}
	}
	var epoch string
	var from backends.Cursor
	for i := range 25 {
		end := (i+1)*n/25 - 1
		to := backends.Cursor{MessageID: events[end].ID, Time: events[end].Timestamp, Index: int64(end)}
		c := backends.Commit{Epoch: epoch, From: from, To: to, Observation: backends.Observation{Note: note(fmt.Sprintf("o%d", i), int(from.Next()), end)}}
		if _, err := store.Commit(ctx, key, c); err != nil {
			tb.Fatal(err)
		}
		if from = to; i == 0 {
			snap, err := store.Load(ctx, key, backends.Stamp{})
			if err != nil {
				tb.Fatal(err)
			}
			epoch = snap.Epoch
		}
		if i < 5 {
			r := backends.Reflection{Note: note(fmt.Sprintf("r%d", i), i*n/25, end), Generation: 1, Sources: []string{fmt.Sprintf("o%d", i)}}
			if _, err := store.Condense(ctx, key, backends.Condense{Epoch: epoch, Reflection: r}); err != nil {
				tb.Fatal(err)
			}
		}
	}
}
