package middleware_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/model"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/middleware"
)

// BenchmarkTurn is the overhead of one model call when nothing has changed since the last one. The request is made
// beforehand: what ADK spends on building it from the events, which grows with them, is not in the figures.
func BenchmarkTurn(b *testing.B) {
	for _, backend := range stores {
		b.Run(backend.name, func(b *testing.B) {
			for _, behind := range []int{100, 1000, 20_000} {
				b.Run(fmt.Sprintf("behind=%d", behind), func(b *testing.B) { benchTurn(b, backend.open(b), behind, false) })
			}
		})
	}
	b.Run("inmemory/tools/behind=100", func(b *testing.B) { benchTurn(b, inmemory.New(), 100, true) })
}

func benchTurn(b *testing.B, store backends.Store, behind int, tools bool) {
	w := newWarm(b, store, behind, tools)
	b.ReportAllocs()
	for b.Loop() {
		w.call()
	}
	b.ReportMetric(float64(len(w.in.sent.Contents)), "contents")
}

// BenchmarkFirstTurn is the overhead of the first model call that a process sees of a session: its events are read once.
func BenchmarkFirstTurn(b *testing.B) {
	for _, backend := range stores {
		b.Run(backend.name, func(b *testing.B) {
			for _, behind := range []int{100, 20_000} {
				b.Run(fmt.Sprintf("behind=%d", behind), func(b *testing.B) {
					store := backend.open(b)
					w := newWarm(b, store, behind, false)
					b.ReportAllocs()
					for b.Loop() {
						mem, err := middleware.New(middleware.Config{Enabled: true, Extractive: true}, middleware.Deps{Store: store})
						if err != nil {
							b.Fatal(err)
						}
						w.llm = mem.Model(w.in)
						w.call()
					}
				})
			}
		})
	}
}

// BenchmarkTurnWithoutSession is a model call outside ADK's runner: the messages are the request's contents, which are
// told apart by their hashes, so that it takes time in proportion to them.
func BenchmarkTurnWithoutSession(b *testing.B) {
	for _, n := range []int{40, 20_000} {
		b.Run(fmt.Sprintf("contents=%d", n), func(b *testing.B) {
			mem, err := middleware.New(middleware.Config{
				Enabled: true, Extractive: true, MessageTokenThreshold: 1 << 20, MaxObservationBatchTokens: 1 << 20, MaxMessageTokenBudget: 1 << 20,
			}, middleware.Deps{Store: inmemory.New()})
			if err != nil {
				b.Fatal(err)
			}
			ctx := middleware.WithSessionKey(b.Context(), backends.SessionKey{App: "app", User: "user", Session: "session"})
			llm, req := mem.Model(&silent{}), requestOf(conversation(n, false))
			b.ReportAllocs()
			for b.Loop() {
				for range llm.GenerateContent(ctx, req, false) {
				}
			}
		})
	}
}

// instant is an Observer's model that answers at once.
type instant struct{}

func (instant) Name() string { return "instant" }

func (instant) GenerateContent(context.Context, *model.LLMRequest, bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		yield(&model.LLMResponse{Content: genai.NewContentFromText("The family decided on Lisbon in May and booked flight TP1234.", genai.RoleModel)}, nil)
	}
}

// BenchmarkNote is all that a note costs but its model: a session's turn finds 40 un-observed messages, hands them to the
// background, which asks a model that answers at once, checks the note, and stores and indexes it with the messages. A
// user has ten sessions.
func BenchmarkNote(b *testing.B) {
	for _, backend := range stores {
		b.Run(backend.name, func(b *testing.B) {
			mem, err := middleware.New(middleware.Config{Enabled: true}, middleware.Deps{Store: backend.open(b), Model: instant{}})
			if err != nil {
				b.Fatal(err)
			}
			if err := mem.Start(b.Context()); err != nil {
				b.Fatal(err)
			}
			events := conversation(40, false)
			w := warm{llm: mem.Model(&silent{}), req: requestOf(events)}
			notes := 0
			b.ReportAllocs()
			for b.Loop() {
				key := backends.SessionKey{App: "app", User: fmt.Sprint("user", notes/10), Session: fmt.Sprint("session", notes)}
				w.ctx = callContext{Context: b.Context(), session: &fixedSession{key: key, events: events}}
				w.call()
				if err := mem.Flush(b.Context(), key); err != nil {
					b.Fatal(err)
				}
				notes++
			}
			if s := mem.Stats(); int(s.Observations) != notes || s.Fallbacks > 0 {
				b.Errorf("%d notes were asked for, stats %+v", notes, s)
			}
			if err := mem.Stop(context.Background()); err != nil {
				b.Error(err)
			}
		})
	}
}
