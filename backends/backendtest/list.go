package backendtest

import (
	"testing"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

func runList(t *testing.T, open func(testing.TB) Harness) {
	main := backends.Stream{}
	runAll(t, open, []scenario{
		{"STO-2 the n newest active notes are listed, oldest first", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			for range 6 {
				s.observe(main, 1)
			}
			for _, id := range []string{"note1", "note2", "note3"} {
				s.condense(1, id)
			}
			for n, want := range map[int][]string{
				0: {"note4", "note5", "note6"}, -1: {"note4", "note5", "note6"}, 1: {"note6"}, 2: {"note5", "note6"},
				3: {"note4", "note5", "note6"}, 99: {"note4", "note5", "note6"},
			} {
				got, err := s.store.ListRecentObservations(ctx(), s.key, n)
				must(t, err)
				same(t, "observations", ids(got, observationID), want)
			}
			for n, want := range map[int][]string{
				0: {"note7", "note8", "note9"}, 2: {"note8", "note9"}, 99: {"note7", "note8", "note9"},
			} {
				got, err := s.store.ListRecentReflections(ctx(), s.key, n)
				must(t, err)
				same(t, "reflections", ids(got, reflectionID), want)
			}
			snap := s.load()
			observations, err := s.store.ListRecentObservations(ctx(), s.key, 0)
			must(t, err)
			same(t, "observations in full", observations, snap.Observations)
			reflections, err := s.store.ListRecentReflections(ctx(), s.key, 0)
			must(t, err)
			same(t, "reflections in full", reflections, snap.Reflections)
		}},
		{"STO-2 a session without state has none", func(t *testing.T, h Harness) {
			observations, err := h.Store.ListRecentObservations(ctx(), keyOf("s"), 5)
			must(t, err)
			reflections, err := h.Store.ListRecentReflections(ctx(), keyOf("s"), 5)
			must(t, err)
			if len(observations)+len(reflections) > 0 {
				t.Errorf("%v and %v are listed", observations, reflections)
			}
		}},
		{"sessions are listed by newest write, counted, filtered and paged", func(t *testing.T, h Harness) {
			write := func(user, session string) *script {
				h.Age(time.Minute)
				s := play(t, h.Store, backends.SessionKey{App: "app", User: user, Session: session})
				s.observe(main, 2)
				return s
			}
			first := write("ada", "100%_A")
			write("bob", "Straße-Б")
			write("ada", "x")
			write("cleo", "y")
			other := play(t, h.Store, backends.SessionKey{App: "other", User: "ada", Session: "x"})
			other.observe(main, 1)
			gone := write("ada", "gone")
			must(t, h.Store.DeleteSession(ctx(), gone.key))
			empty := write("ada", "empty")
			c := empty.next(main, 1)
			c.Messages = nil
			must(t, h.Store.DeleteSession(ctx(), empty.key))
			c.Epoch, c.From = empty.load().Epoch, backends.Cursor{}
			_, err := h.Store.Commit(ctx(), empty.key, c)
			must(t, err)
			must(t, h.Store.DeleteObservationsBySession(ctx(), empty.key))
			h.Age(time.Minute)
			first.observe(main, 1)
			first.condense(1, "note1")

			list := func(q backends.SessionQuery) []backends.SessionInfo {
				t.Helper()
				q.App = "app"
				got, err := h.Store.ListSessions(ctx(), q)
				must(t, err)
				return got
			}
			for _, tc := range []struct {
				name string
				q    backends.SessionQuery
				want []string
			}{
				{"all", backends.SessionQuery{}, []string{"100%_A", "y", "x", "Straße-Б"}},
				{"one user", backends.SessionQuery{User: "ada"}, []string{"100%_A", "x"}},
				{"first page", backends.SessionQuery{Limit: 3}, []string{"100%_A", "y", "x"}},
				{"second page", backends.SessionQuery{Limit: 3, Offset: 3}, []string{"Straße-Б"}},
				{"past the end", backends.SessionQuery{Offset: 9}, []string{}},
				{"part of a session", backends.SessionQuery{Contains: "sTRAßE"}, []string{"Straße-Б"}},
				{"part of a user", backends.SessionQuery{Contains: "LE"}, []string{"y"}},
				{"no wildcards", backends.SessionQuery{Contains: "%_a"}, []string{"100%_A"}},
				{"letters beyond ASCII in their own case only", backends.SessionQuery{Contains: "б"}, []string{}},
			} {
				got := list(tc.q)
				same(t, tc.name, ids(got, func(i backends.SessionInfo) string { return i.Key.Session }), tc.want)
			}
			info := list(backends.SessionQuery{Limit: 1})[0]
			if time.Since(info.UpdatedAt).Abs() > time.Hour {
				t.Errorf("last write is at %v", info.UpdatedAt)
			}
			info.UpdatedAt = time.Time{}
			same(t, "info", info, backends.SessionInfo{Key: first.key, Observations: 1, Reflections: 1, Messages: 3})
		}},
	})
}
