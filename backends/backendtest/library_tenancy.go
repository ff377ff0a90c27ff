package backendtest

import (
	"reflect"
	"testing"

	"github.com/adkmemory/adkmemory/backends"
)

// libraryProbes holds a call of every method of a library's own roles, made for a tenant who knows the names of
// another's documents. Each returns what it found.
func libraryProbes(victim []backends.Ref, entry backends.Ref) map[string]func(t testing.TB, l library, app, user string) int {
	return map[string]func(t testing.TB, l library, app, user string) int{
		"Search": func(t testing.TB, l library, app, user string) int {
			return len(found(t, l, backends.SearchQuery{App: app, User: user, Text: "secret", Kinds: backends.Kinds()})) +
				len(found(t, l, backends.SearchQuery{App: app, User: user, Text: "secret", Session: "s"}))
		},
		"Lookup": func(t testing.TB, l library, app, user string) int {
			got, err := l.Lookup(ctx(), app, user, victim)
			must(t, err)
			return len(got)
		},
		"SaveEntry": func(t testing.TB, l library, app, user string) int {
			got, err := l.SaveEntry(ctx(), app, user, backends.Entry{Kind: entry.Kind, Key: entry.ID, Text: "An intruder's."})
			must(t, err)
			return got.Version - 1
		},
		"GetEntry": func(t testing.TB, l library, app, user string) int {
			_, err := l.GetEntry(ctx(), app, user, entry.Kind, entry.ID)
			is(t, "GetEntry", err, backends.ErrNotFound)
			return 0
		},
		"ListEntries": func(t testing.TB, l library, app, user string) int {
			got, err := l.ListEntries(ctx(), backends.EntryQuery{App: app, User: user})
			must(t, err)
			return len(got)
		},
		"ListVersions": func(t testing.TB, l library, app, user string) int {
			got, err := l.ListVersions(ctx(), app, user, entry.Kind, entry.ID)
			must(t, err)
			return len(got)
		},
		"DeleteEntry": func(t testing.TB, l library, app, user string) int {
			must(t, l.DeleteEntry(ctx(), app, user, entry.Kind, entry.ID))
			return 0
		},
		"RecordOutcome": func(t testing.TB, l library, app, user string) int {
			_, err := l.RecordOutcome(ctx(), app, user, entry.Kind, entry.ID, false)
			is(t, "RecordOutcome", err, backends.ErrNotFound)
			return 0
		},
		"PutVectors": func(t testing.TB, l library, app, user string) int {
			must(t, l.PutVectors(ctx(), app, user, []backends.Vector{{Ref: victim[0], Model: "m", Values: []float32{-1}}}))
			return 0
		},
		"NearestVectors": func(t testing.TB, l library, app, user string) int {
			got, err := l.NearestVectors(ctx(), backends.VectorQuery{App: app, User: user, Model: "m", Values: []float32{1}})
			must(t, err)
			return len(got)
		},
		"PutTriples": func(t testing.TB, l library, app, user string) int {
			must(t, l.PutTriples(ctx(), app, user, []backends.Triple{{Subject: "x", Predicate: "y", Object: "z", Source: victim[0]}}))
			return 0
		},
		"ListTriples": func(t testing.TB, l library, app, user string) int {
			got, err := l.ListTriples(ctx(), backends.TripleQuery{App: app, User: user, About: []string{"ada"}})
			must(t, err)
			return len(got)
		},
		"TriplesOf": func(t testing.TB, l library, app, user string) int {
			got, err := l.TriplesOf(ctx(), app, user, victim)
			must(t, err)
			return len(got)
		},
	}
}

// libraryState is all that a library says about the victim.
func libraryState(t testing.TB, l library, victim []backends.Ref) []any {
	t.Helper()
	hits, err := l.Search(ctx(), backends.SearchQuery{App: "app", User: "user", Text: "secret intruder", Kinds: backends.Kinds()})
	must(t, err)
	docs, err := l.Lookup(ctx(), "app", "user", victim)
	must(t, err)
	near, err := l.NearestVectors(ctx(), backends.VectorQuery{App: "app", User: "user", Model: "m", Values: []float32{1}})
	must(t, err)
	triples, err := l.TriplesOf(ctx(), "app", "user", victim)
	must(t, err)
	if len(hits) != 2 || len(docs) != 2 || len(near) != 2 || len(triples) != 2 {
		t.Fatalf("the victim has %v %v %v %v", hits, docs, near, triples)
	}
	return []any{hits, docs, near, triples}
}

func runLibraryTenancy(t *testing.T, open func(testing.TB) Harness) {
	t.Run("SEC-1 every method of search, knowledge, vectors and graph is probed", func(t *testing.T) {
		t.Parallel()
		known := libraryProbes(nil, backends.Ref{})
		for _, role := range []reflect.Type{
			reflect.TypeFor[backends.Searcher](), reflect.TypeFor[backends.KnowledgeStore](), reflect.TypeFor[backends.VectorStore](),
			reflect.TypeFor[backends.GraphStore](),
		} {
			for i := range role.NumMethod() {
				if name := role.Method(i).Name; !has(known, name) {
					t.Errorf("%s.%s has no probe", role.Name(), name)
				}
			}
		}
	})
	for method := range libraryProbes(nil, backends.Ref{}) {
		t.Run("SEC-1 "+method+" neither shows nor changes another tenant's rows", func(t *testing.T) {
			t.Parallel()
			l := libraryOf(t, open(t))
			entry := backends.Ref{Kind: backends.KindKnowledge, ID: "k"}
			victim := append(say(t, l, keyOf("s"), "A secret."), entry)
			save(t, l, backends.Entry{Kind: entry.Kind, Key: entry.ID, Text: "Another secret."})
			for _, r := range victim {
				must(t, l.PutVectors(ctx(), "app", "user", []backends.Vector{{Ref: r, Model: "m", Values: []float32{1}}}))
				must(t, l.PutTriples(ctx(), "app", "user", []backends.Triple{{Subject: "Ada", Predicate: "has", Object: "secret", Source: r}}))
			}
			before := libraryState(t, l, victim)
			for _, tenant := range [][2]string{{"app", "other"}, {"other", "user"}, {"App", "user"}, {"%", "%"}, {"user", "app"}, {"ap", "puser"}} {
				if n := libraryProbes(victim, entry)[method](t, l, tenant[0], tenant[1]); n > 0 {
					t.Errorf("%v finds %d", tenant, n)
				}
			}
			same(t, "the victim's library", libraryState(t, l, victim), before)
		})
	}
}
