package backendtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

// library is a store with everything beyond sessions: search, knowledge, vectors and triples.
type library interface {
	backends.Store
	backends.Searcher
	backends.Appender
	backends.KnowledgeStore
	backends.VectorStore
	backends.GraphStore
}

// libraryOf returns the store's library; the test is skipped for a store without one.
func libraryOf(t testing.TB, h Harness) library {
	t.Helper()
	l, ok := h.Store.(library)
	if !ok {
		t.Skip("the store has no search, knowledge, vectors and triples")
	}
	return l
}

// say appends messages of one text each to a session and returns their references.
func say(t testing.TB, l library, key backends.SessionKey, texts ...string) []backends.Ref {
	t.Helper()
	old, err := l.ListMessages(ctx(), key, backends.MessageQuery{Limit: backends.MaxListItems})
	must(t, err)
	messages := make([]backends.Message, len(texts))
	refs := make([]backends.Ref, len(texts))
	for i, text := range texts {
		n := len(old) + i
		messages[i] = backends.Message{
			ID: fmt.Sprint("m", n), Index: int64(n), Author: "user", Role: "user", Text: text,
			Time: start().Add(time.Duration(n) * time.Minute),
		}
		refs[i] = backends.Ref{Kind: backends.KindMessage, Session: key.Session, ID: messages[i].ID}
	}
	n, err := l.AppendMessages(ctx(), key, backends.Stream{}, messages)
	if err != nil || n != len(texts) {
		t.Fatalf("AppendMessages(%v) = %d, %v", key, n, err)
	}
	return refs
}

// found searches and returns what was found as "kind/session/id".
func found(t testing.TB, l library, q backends.SearchQuery) []string {
	t.Helper()
	if q.App == "" {
		q.App, q.User = "app", "user"
	}
	list, err := l.Search(ctx(), q)
	if err != nil {
		t.Fatalf("Search(%q): %v", q.Text, err)
	}
	return ids(list, func(f backends.Found) string { return name(f.Ref) })
}

func name(r backends.Ref) string { return string(r.Kind) + "/" + r.Session + "/" + r.ID }

func save(t testing.TB, l library, e backends.Entry) backends.Entry {
	t.Helper()
	got, err := l.SaveEntry(ctx(), "app", "user", e)
	if err != nil {
		t.Fatalf("SaveEntry(%q): %v", e.Key, err)
	}
	return got
}
