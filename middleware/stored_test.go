package middleware_test

import (
	"context"
	"sync"
	"testing"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/retriever/rag"
)

func TestStored(t *testing.T) {
	t.Parallel()

	t.Run("RAG-1 every stored note and its messages can be embedded in the background and found by similarity", func(t *testing.T) {
		t.Parallel()
		store := inmemory.New()
		embed := rag.NewEmbeddingBuffer(rag.BufferConfig{}, rag.Local{}, store)
		if err := embed.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		a := newApp(t, talker(), with(func(c *appConfig) {
			c.store = store
			c.cfg.MessageTokenThreshold = 150
			c.deps.Stored = func(_ context.Context, key backends.SessionKey, note backends.Note, messages []backends.Message) {
				req := rag.EmbeddingRequest{ID: note.ID, App: key.App, User: key.User}
				req.Documents = append(req.Documents, rag.Text{Ref: backends.Ref{Kind: backends.KindObservation, Session: key.Session, ID: note.ID}, Text: note.Text})
				for _, m := range messages {
					req.Documents = append(req.Documents, rag.Text{Ref: backends.Ref{Kind: backends.KindMessage, Session: key.Session, ID: m.ID}, Text: m.Text})
				}
				embed.Add(req)
			}
		}))
		for i := range 12 {
			a.say(fact(i))
		}
		a.settle()
		if err := embed.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
		vectors, err := rag.Local{}.Embed(t.Context(), rag.Query, []string{"booking R0001 Passenger1"})
		if err != nil {
			t.Fatal(err)
		}
		hits, err := store.NearestVectors(t.Context(), backends.VectorQuery{App: a.key.App, User: a.key.User, Model: rag.Local{}.Model(), Values: vectors[0], Limit: 3})
		if err != nil || len(hits) == 0 {
			t.Fatalf("%v, %v", hits, err)
		}
	})

	t.Run("ADP-3 a panic of the hook loses nothing", func(t *testing.T) {
		t.Parallel()
		var mu sync.Mutex
		told := 0
		a := newApp(t, talker(), reflecting(reflectFunc(condense), with(func(c *appConfig) {
			c.deps.Stored = func(context.Context, backends.SessionKey, backends.Note, []backends.Message) {
				mu.Lock()
				told++
				mu.Unlock()
				panic("no")
			}
		}))...)
		for i := range 20 {
			a.say(fact(i))
			a.settle()
		}
		s := a.mem.Stats()
		if int64(told) != s.Observations+s.Reflections || s.Panics != int64(told) || s.Reflections == 0 {
			t.Errorf("told of %d notes, stats %+v", told, s)
		}
	})
}
