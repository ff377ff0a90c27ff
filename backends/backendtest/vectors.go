package backendtest

import (
	"math"
	"testing"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

func runVectors(t *testing.T, open func(testing.TB) Harness) {
	vector := func(r backends.Ref, values ...float32) backends.Vector {
		return backends.Vector{Ref: r, Model: "m", Values: values}
	}
	nearest := func(t testing.TB, l library, q backends.VectorQuery) []string {
		t.Helper()
		if q.App == "" {
			q.App, q.User = "app", "user"
		}
		if q.Model == "" {
			q.Model = "m"
		}
		got, err := l.NearestVectors(ctx(), q)
		must(t, err)
		return ids(got, func(s backends.ScoredRef) string { return name(s.Ref) })
	}
	runAll(t, open, []scenario{
		{"RAG-1 vectors are found by cosine similarity, with filters by session, kind and model", func(t *testing.T, h Harness) {
			l := libraryOf(t, h)
			a, b := say(t, l, keyOf("a"), "one", "two"), say(t, l, keyOf("b"), "three")
			e := save(t, l, backends.Entry{Kind: backends.KindSkill, Key: "k", Text: "four"})
			entry := backends.Ref{Kind: e.Kind, ID: e.Key}
			must(t, l.PutVectors(ctx(), "app", "user", []backends.Vector{
				vector(a[0], 1, 0), vector(a[1], 10, 10), vector(b[0], 0, 2), vector(entry, 1, 3),
				{Ref: a[0], Model: "other", Values: []float32{0, 1}}, {Ref: a[1], Model: "other", Values: []float32{0, 1, 0}},
			}))
			must(t, l.PutVectors(ctx(), "app", "user", []backends.Vector{vector(a[0], -1, 0)}))
			up := []float32{0, 1}
			same(t, "nearest", nearest(t, l, backends.VectorQuery{Values: up}),
				[]string{"message/b/m0", "skill//k", "message/a/m1", "message/a/m0"})
			same(t, "nearest of a session", nearest(t, l, backends.VectorQuery{Values: up, Session: "a"}), []string{"message/a/m1", "message/a/m0"})
			same(t, "nearest of a kind", nearest(t, l, backends.VectorQuery{Values: up, Kinds: []backends.Kind{backends.KindSkill}}), []string{"skill//k"})
			same(t, "nearest of a model", nearest(t, l, backends.VectorQuery{Values: up, Model: "other"}), []string{"message/a/m0"})
			same(t, "the nearest two", nearest(t, l, backends.VectorQuery{Values: up, Limit: 2}), []string{"message/b/m0", "skill//k"})
			scored, err := l.NearestVectors(ctx(), backends.VectorQuery{App: "app", User: "user", Model: "m", Values: up})
			must(t, err)
			for i, want := range []float64{1, 3 / math.Sqrt(10), math.Sqrt2 / 2, 0} {
				if math.Abs(scored[i].Score-want) > 1e-6 {
					t.Errorf("score %d is %v, want %v", i, scored[i].Score, want)
				}
			}
			for _, user := range []string{"other", "user"} {
				if got := nearest(t, l, backends.VectorQuery{App: map[string]string{"other": "app", "user": "other"}[user], User: user, Values: up}); len(got) != 0 {
					t.Errorf("another tenant finds %q", got)
				}
			}
		}},
		{"STO-3 vectors and triples go with their documents, and none are kept of documents that are gone", func(t *testing.T, h Harness) {
			l := libraryOf(t, h)
			s := play(t, h.Store, keyOf("s"))
			s.observe(backends.Stream{}, 1)
			note := backends.Ref{Kind: backends.KindObservation, Session: "s", ID: "note1"}
			message := backends.Ref{Kind: backends.KindMessage, Session: "s", ID: "-m0"}
			other := say(t, l, keyOf("other"), "x")[0]
			put := func() {
				must(t, l.PutVectors(ctx(), "app", "user", []backends.Vector{vector(note, 1), vector(message, 1), vector(other, 1)}))
				var triples []backends.Triple
				for _, r := range []backends.Ref{note, message, other} {
					triples = append(triples, backends.Triple{Subject: "Ada", Predicate: "likes", Object: "tea", Source: r})
				}
				must(t, l.PutTriples(ctx(), "app", "user", triples))
			}
			left := func(want int) {
				t.Helper()
				if got := nearest(t, l, backends.VectorQuery{Values: []float32{1}}); len(got) != want {
					t.Errorf("vectors of %q are left, want %d", got, want)
				}
				got, err := l.ListTriples(ctx(), backends.TripleQuery{App: "app", User: "user", About: []string{"tea"}})
				if err != nil || len(got) != want {
					t.Errorf("triples %+v are left, want %d: %v", got, want, err)
				}
			}
			put()
			left(3)
			must(t, l.DeleteObservationsBySession(ctx(), s.key))
			left(2)
			put()
			left(2)
			must(t, l.DeleteSession(ctx(), s.key))
			left(1)
			put()
			left(1)
			must(t, l.DeleteUser(ctx(), "app", "user"))
			left(0)
			put()
			left(0)
		}},
		{"RAG-2 triples are found by subject and object in either case, once, newest first, with filters", func(t *testing.T, h Harness) {
			l := libraryOf(t, h)
			a, b := say(t, l, keyOf("a"), "one")[0], say(t, l, keyOf("b"), "two")[0]
			triple := func(s, p, o string, source backends.Ref, minute int) backends.Triple {
				return backends.Triple{Subject: s, Predicate: p, Object: o, Source: source, At: start().Add(time.Duration(minute) * time.Minute)}
			}
			for range 2 {
				must(t, l.PutTriples(ctx(), "app", "user", []backends.Triple{
					triple("Ada Lovelace", "works at", "Acme", a, 1), triple(" ada  lovelace", "WORKS at", "acme", a, 2),
					triple("Acme", "is in", "Lyon", b, 3), triple("Bob", "likes", "tea", b, 4),
				}))
			}
			list := func(q backends.TripleQuery) []string {
				t.Helper()
				q.App, q.User = "app", "user"
				got, err := l.ListTriples(ctx(), q)
				must(t, err)
				return ids(got, func(x backends.Triple) string { return x.Subject + "|" + x.Predicate + "|" + x.Object })
			}
			same(t, "about Acme", list(backends.TripleQuery{About: []string{"ACME"}}), []string{"Acme|is in|Lyon", "Ada Lovelace|works at|Acme"})
			same(t, "about Acme in a session", list(backends.TripleQuery{About: []string{"acme"}, Session: "a"}), []string{"Ada Lovelace|works at|Acme"})
			same(t, "the newest", list(backends.TripleQuery{About: []string{"acme", "bob"}, Limit: 1}), []string{"Bob|likes|tea"})
			same(t, "about nothing", list(backends.TripleQuery{}), []string{})
			of, err := l.TriplesOf(ctx(), "app", "user", []backends.Ref{b})
			must(t, err)
			if len(of) != 2 || of[0].Subject != "Bob" || of[0].Source != b || !of[0].At.Equal(backends.CleanTime(start().Add(4*time.Minute))) {
				t.Errorf("triples of a document: %+v", of)
			}
			for _, tenant := range [][2]string{{"app", "other"}, {"other", "user"}} {
				got, err := l.ListTriples(ctx(), backends.TripleQuery{App: tenant[0], User: tenant[1], About: []string{"acme"}})
				of, err2 := l.TriplesOf(ctx(), tenant[0], tenant[1], []backends.Ref{a, b})
				if len(got)+len(of) > 0 || err != nil || err2 != nil {
					t.Errorf("another tenant finds %v %v, %v %v", got, of, err, err2)
				}
			}
		}},
		{"SEC-4 vectors and triples past the limits are errors", func(t *testing.T, h Harness) {
			l := libraryOf(t, h)
			r := backends.Ref{Kind: backends.KindMessage, Session: "s", ID: "m"}
			for what, v := range map[string]backends.Vector{
				"no values": vector(r), "no number": vector(r, float32(math.NaN())), "no model": {Ref: r, Values: []float32{1}},
				"no session": vector(backends.Ref{Kind: backends.KindMessage, ID: "m"}, 1),
			} {
				is(t, what, l.PutVectors(ctx(), "app", "user", []backends.Vector{v}), backends.ErrInvalid)
			}
			is(t, "many dimensions", l.PutVectors(ctx(), "app", "user", []backends.Vector{vector(r, make([]float32, backends.MaxDimensions+1)...)}), backends.ErrTooLarge)
			is(t, "many vectors", l.PutVectors(ctx(), "app", "user", make([]backends.Vector, backends.MaxListItems+1)), backends.ErrTooLarge)
			is(t, "many triples", l.PutTriples(ctx(), "app", "user", make([]backends.Triple, backends.MaxListItems+1)), backends.ErrTooLarge)
			is(t, "an empty triple", l.PutTriples(ctx(), "app", "user", []backends.Triple{{Source: r}}), backends.ErrInvalid)
			_, err := l.NearestVectors(ctx(), backends.VectorQuery{App: "app", User: "user", Model: "m"})
			is(t, "an empty query", err, backends.ErrInvalid)
		}},
	})
}
