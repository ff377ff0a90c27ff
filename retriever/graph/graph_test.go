package graph_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/retriever/graph"
	"github.com/adkmemory/adkmemory/retriever/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ref(session, id string) backends.Ref {
	return backends.Ref{Kind: backends.KindMessage, Session: session, ID: id}
}

// world has messages in sessions, a graph over them, and the same of another user.
func world(t *testing.T) *inmemory.Store {
	t.Helper()
	s := inmemory.New()
	for _, user := range []string{"ada", "bob"} {
		for _, session := range []string{"a", "b", "c"} {
			key := backends.SessionKey{App: "app", User: user, Session: session}
			_, err := s.AppendMessages(t.Context(), key, backends.Stream{}, []backends.Message{{ID: "m", Text: map[string]string{
				"a": "Carol works at Acme", "b": "Its office moved to Lyon", "c": "Great food there"}[session]}})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	b := graph.NewBuffer(queue.Config{}, s)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Add(graph.Request{ID: "1", App: "app", User: "ada", Triples: []backends.Triple{
		{Subject: "Carol", Predicate: "works at", Object: "Acme", Source: ref("a", "m")},
		{Subject: "ACME", Predicate: "moved to", Object: "Lyon", Source: ref("b", "m")},
		{Subject: "Lyon", Predicate: "has", Object: "food", Source: ref("c", "m")},
	}})
	if err := b.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func search(t *testing.T, e graph.Expander, q backends.SearchQuery) string {
	t.Helper()
	if q.User == "" {
		q.User = "ada"
	}
	q.App, q.Text = "app", "Carol"
	found, err := e.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i, f := range found {
		out = append(out, f.Session)
		if i > 0 && f.Score >= found[i-1].Score {
			t.Errorf("result %d scores %v, the one before it %v", i, f.Score, found[i-1].Score)
		}
	}
	return strings.Join(out, "")
}

type broken struct{ backends.GraphStore }

func (broken) TriplesOf(context.Context, string, string, []backends.Ref) ([]backends.Triple, error) {
	return nil, errors.New("down")
}

func TestExpander(t *testing.T) {
	t.Parallel()
	t.Run("RAG-2 results are expanded along the graph, hop by hop, each fainter", func(t *testing.T) {
		t.Parallel()
		s := world(t)
		for hops, want := range map[int]string{0: "ab", 1: "ab", 2: "abc", 5: "abc"} {
			if got := search(t, graph.Expander{Base: s, Graph: s, Hops: hops}, backends.SearchQuery{}); got != want {
				t.Errorf("%d hops find sessions %q, want %q", hops, got, want)
			}
		}
	})
	t.Run("RAG-2 CTX-7 the filters hold for what is added", func(t *testing.T) {
		t.Parallel()
		s := world(t)
		e := graph.Expander{Base: s, Graph: s, Hops: 2}
		for want, q := range map[string]backends.SearchQuery{
			"a": {Session: "a"}, "": {Kinds: []backends.Kind{backends.KindObservation}}, "ab": {Limit: 2},
		} {
			if got := search(t, e, q); got != want {
				t.Errorf("%+v finds sessions %q, want %q", q, got, want)
			}
		}
		if got := search(t, e, backends.SearchQuery{User: "bob"}); got != "a" {
			t.Errorf("another user finds sessions %q", got)
		}
	})
	t.Run("ADP-3 when the graph fails the other searcher is enough", func(t *testing.T) {
		t.Parallel()
		s := world(t)
		if got := search(t, graph.Expander{Base: s, Graph: broken{s}, Logger: slog.New(slog.DiscardHandler)}, backends.SearchQuery{}); got != "a" {
			t.Errorf("found sessions %q", got)
		}
	})
}

func TestBuffer(t *testing.T) {
	t.Parallel()
	t.Run("DRP-1 DRP-2 a full queue drops with a warning that carries the request id, and counts", func(t *testing.T) {
		t.Parallel()
		var log bytes.Buffer
		b := graph.NewBuffer(queue.Config{Size: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))}, inmemory.New())
		b.Add(graph.Request{ID: "kept"})
		if b.Add(graph.Request{ID: "lost"}) || b.DroppedCount() != 1 || !strings.Contains(log.String(), "request_id=lost") || !strings.Contains(log.String(), "queue=graph") {
			t.Errorf("%d dropped, logged %s", b.DroppedCount(), log.String())
		}
		if err := b.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func Example() {
	store := inmemory.New()
	found, err := graph.Expander{Base: store, Graph: store}.Search(context.Background(), backends.SearchQuery{
		App: "app", User: "ada", Text: "Where does Carol work?",
	})
	fmt.Println(len(found), err)
	// Output: 0 <nil>
}
