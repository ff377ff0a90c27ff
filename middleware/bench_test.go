package middleware_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
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
	events fixedEvents
}

func (s fixedSession) ID() string             { return "session" }
func (s fixedSession) AppName() string        { return "app" }
func (s fixedSession) UserID() string         { return "user" }
func (s fixedSession) Events() session.Events { return s.events }

// callContext is the context of a model call, as an ADK runner makes it.
type callContext struct {
	*agent.StrictContextMock
	context.Context
	session session.Session
}

func (c callContext) Session() session.Session         { return c.session }
func (c callContext) Branch() string                   { return "" }
func (c callContext) IsolationScope() string           { return "" }
func (c callContext) InvocationID() string             { return "invocation" }
func (c callContext) Agent() agent.Agent               { return nil }
func (c callContext) UserContent() *genai.Content      { return nil }
func (c callContext) AppName() string                  { return "app" }
func (c callContext) UserID() string                   { return "user" }
func (c callContext) SessionID() string                { return "session" }
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

// warm is a session with n observed messages before a window of 40, five reflections and twenty observations.
type warm struct {
	llm model.LLM
	in  *silent
	ctx context.Context
	req *model.LLMRequest
}

func newWarm(tb testing.TB, store backends.Store, n int) warm {
	tb.Helper()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	events := make(fixedEvents, n+40)
	for i := range events {
		role, author := genai.RoleUser, "user"
		if i%2 == 1 {
			role, author = genai.RoleModel, ""
		}
		events[i] = &session.Event{ID: fmt.Sprintf("e%06d", i), Author: author, Timestamp: start.Add(time.Duration(i) * time.Second)}
		events[i].Content = genai.NewContentFromText(fmt.Sprintf("Message %d says something about the trip to Lisbon in May, and then some more about it.", i), genai.Role(role))
	}
	ctx := tb.Context()
	key := backends.SessionKey{App: "app", User: "user", Session: "session"}
	note := func(id string, start, end int) backends.Note {
		return backends.Note{ID: id, Text: fmt.Sprintf("Note %s: the family decided on Lisbon and booked flight TP%s.", id, id), Tokens: 20, Writer: "test",
			Range: backends.Range{Start: int64(start), End: int64(end), StartID: events[start].ID, EndID: events[end].ID}, CreatedAt: start0}
	}
	var epoch string
	var from backends.Cursor
	commit := func(i, end int) {
		to := backends.Cursor{MessageID: events[end].ID, Time: events[end].Timestamp, Index: int64(end)}
		c := backends.Commit{Epoch: epoch, From: from, To: to, Observation: backends.Observation{Note: note(fmt.Sprintf("o%d", i), int(from.Next()), end)}}
		if _, err := store.Commit(ctx, key, c); err != nil {
			tb.Fatal(err)
		}
		from = to
		snap, err := store.Load(ctx, key, backends.Stamp{})
		if err != nil {
			tb.Fatal(err)
		}
		epoch = snap.Epoch
	}
	for i := range 25 {
		commit(i, (i+1)*n/25-1)
		if i < 5 {
			r := backends.Reflection{Note: note(fmt.Sprintf("r%d", i), i*n/25, (i+1)*n/25-1), Generation: 1, Sources: []string{fmt.Sprintf("o%d", i)}}
			if _, err := store.Condense(ctx, key, backends.Condense{Epoch: epoch, Reflection: r}); err != nil {
				tb.Fatal(err)
			}
		}
	}
	mem, err := middleware.New(middleware.Config{Enabled: true, Extractive: true, MessageTokenThreshold: 2000, MaxMessageTokenBudget: 1200}, middleware.Deps{Store: store})
	if err != nil {
		tb.Fatal(err)
	}
	contents := make([]*genai.Content, len(events))
	for i, e := range events {
		c := *e.Content
		if c.Role == genai.RoleModel {
			c.Role = genai.RoleModel
		}
		contents[i] = &c
	}
	in := &silent{}
	w := warm{
		llm: mem.Model(in), in: in,
		ctx: callContext{Context: ctx, session: fixedSession{events: events}},
		req: &model.LLMRequest{Model: "silent", Contents: contents, Config: &genai.GenerateContentConfig{SystemInstruction: genai.NewContentFromText("You are a travel agent.", genai.RoleUser)}},
	}
	w.call()
	return w
}

var start0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (w warm) call() {
	for range w.llm.GenerateContent(w.ctx, w.req, false) {
	}
}

// BenchmarkTurn is the overhead of one model call when nothing has changed since the last one.
func BenchmarkTurn(b *testing.B) {
	for _, backend := range []struct {
		name string
		open func(testing.TB) backends.Store
	}{
		{"inmemory", func(testing.TB) backends.Store { return inmemory.New() }},
		{"sqlite", func(tb testing.TB) backends.Store {
			store, err := sqlite.Open(tb.Context(), tb.TempDir()+"/memory.db")
			if err != nil {
				tb.Fatal(err)
			}
			tb.Cleanup(func() { store.Close() })
			return store
		}},
	} {
		for _, behind := range []int{100, 1000, 20000} {
			b.Run(fmt.Sprintf("%s/behind=%d", backend.name, behind), func(b *testing.B) {
				w := newWarm(b, backend.open(b), behind)
				b.ReportMetric(float64(len(w.in.sent.Contents)), "contents")
				b.ReportAllocs()
				for b.Loop() {
					w.call()
				}
			})
		}
	}
}
