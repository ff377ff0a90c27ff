package backendtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

func runDelete(t *testing.T, open func(testing.TB) Harness) {
	main := backends.Stream{}
	// write fills a session with everything there is.
	write := func(t testing.TB, store backends.Store, key backends.SessionKey) *script {
		s := play(t, store, key)
		s.observe(main, 2)
		s.observe(main, 1)
		s.condense(1, "note1")
		if held, err := store.Lease(ctx(), key, "owner", time.Hour); err != nil || !held {
			t.Fatalf("Lease = %v, %v", held, err)
		}
		return s
	}
	// gone checks that nothing is left of a session and that work from before cannot bring it back.
	gone := func(t testing.TB, s *script, inFlight backends.Commit, condense backends.Condense) {
		t.Helper()
		got := s.state()
		if n := len(got.Notes) + len(got.Messages) + len(got.Snapshot.Cursors) + len(got.Snapshot.Observations) +
			len(got.Snapshot.Reflections); n > 0 || got.Snapshot.Stamp == (backends.Stamp{}) {
			t.Errorf("%v holds %+v", s.key, got)
		}
		s.unchanged(func() {
			_, err := s.store.Commit(ctx(), s.key, inFlight)
			is(t, "Commit in flight", err, backends.ErrConflict)
			inFlight.Observation.Stream = backends.Stream{Branch: "new"}
			from := inFlight.From
			inFlight.From = backends.Cursor{}
			_, err = s.store.Commit(ctx(), s.key, inFlight)
			is(t, "Commit in flight of a new stream", err, backends.ErrConflict)
			inFlight.From = from
			_, err = s.store.Condense(ctx(), s.key, condense)
			is(t, "Condense in flight", err, backends.ErrConflict)
			is(t, "RebaseCursor in flight", s.store.RebaseCursor(ctx(), s.key, inFlight.Epoch, main, inFlight.To), backends.ErrConflict)
		})
		if held, err := s.store.Lease(ctx(), s.key, "another owner", time.Hour); err != nil || !held {
			t.Errorf("Lease after the deletion = %v, %v", held, err)
		}
	}
	revived := func(t testing.TB, s *script) {
		t.Helper()
		tombstone := s.load().Stamp
		s.cursors, s.notes = map[backends.Stream]backends.Cursor{}, 0
		s.observe(main, 1)
		got := s.state()
		same(t, "notes after the revival", ids(got.Notes, noteID), []string{"note1"})
		same(t, "stamp after the revival", got.Snapshot.Stamp, backends.Stamp{Epoch: tombstone.Epoch, Version: tombstone.Version + 1})
	}
	runAll(t, open, []scenario{
		{"STO-1 DeleteObservationsBySession removes a session's observations, active and archived, and nothing else", func(t *testing.T, h Harness) {
			s, other := write(t, h.Store, keyOf("s")), write(t, h.Store, keyOf("other"))
			before := s.state()
			other.unchanged(func() { must(t, h.Store.DeleteObservationsBySession(ctx(), s.key)) })
			got := s.state()
			same(t, "notes", ids(got.Notes, noteID), []string{"note3"})
			same(t, "reflections", got.Snapshot.Reflections, before.Snapshot.Reflections)
			same(t, "cursors", got.Snapshot.Cursors, before.Snapshot.Cursors)
			same(t, "messages", got.Messages, before.Messages)
			same(t, "epoch", got.Snapshot.Epoch, before.Snapshot.Epoch)
			s.observe(main, 1)
		}},
		{"STO-1 DeleteReflectionsBySession removes a session's reflections and nothing else", func(t *testing.T, h Harness) {
			s, other := write(t, h.Store, keyOf("s")), write(t, h.Store, keyOf("other"))
			before := s.state()
			other.unchanged(func() { must(t, h.Store.DeleteReflectionsBySession(ctx(), s.key)) })
			got := s.state()
			same(t, "notes", ids(got.Notes, noteID), []string{"note1", "note2"})
			same(t, "observations", got.Snapshot.Observations, before.Snapshot.Observations)
			same(t, "cursors", got.Snapshot.Cursors, before.Snapshot.Cursors)
		}},
		{"STO-1 deleting what is not there returns nil and writes nothing", func(t *testing.T, h Harness) {
			key := keyOf("s")
			must(t, h.Store.DeleteObservationsBySession(ctx(), key))
			must(t, h.Store.DeleteReflectionsBySession(ctx(), key))
			same(t, "snapshot", play(t, h.Store, key).load(), &backends.Snapshot{})
			must(t, h.Store.DeleteSession(ctx(), key))
			must(t, h.Store.DeleteObservationsBySession(ctx(), key))
			must(t, h.Store.DeleteReflectionsBySession(ctx(), key))
			must(t, h.Store.DeleteSession(ctx(), key))
			must(t, h.Store.DeleteUser(ctx(), "nobody", "nobody"))
			must(t, h.Store.DeleteApp(ctx(), "nobody"))
		}},
		{"STO-3 DeleteSession leaves a tombstone that work in flight fails on, and that the next commit revives", func(t *testing.T, h Harness) {
			s, other := write(t, h.Store, keyOf("s")), write(t, h.Store, keyOf("other"))
			commit, condense := s.next(main, 1), s.reflection(1, "note2")
			other.unchanged(func() { must(t, h.Store.DeleteSession(ctx(), s.key)) })
			gone(t, s, commit, condense)
			revived(t, s)
		}},
		{"STO-3 DeleteSession stops the first commit in flight of a session that was never written", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			commit := s.next(main, 1)
			must(t, h.Store.DeleteSession(ctx(), s.key))
			gone(t, s, commit, s.reflection(1, "note1"))
			revived(t, s)
		}},
		{"STO-3 DeleteUser and DeleteApp remove all their sessions, and stop first commits in flight", func(t *testing.T, h Harness) {
			for _, tc := range []struct {
				name   string
				delete func(backends.SessionKey) error
				spared backends.SessionKey
			}{
				{"user", func(k backends.SessionKey) error { return h.Store.DeleteUser(ctx(), k.App, k.User) },
					backends.SessionKey{App: "user", User: "other", Session: "s1"}},
				{"app", func(k backends.SessionKey) error { return h.Store.DeleteApp(ctx(), k.App) },
					backends.SessionKey{App: "another app", User: "user", Session: "s1"}},
			} {
				key := func(session string) backends.SessionKey {
					return backends.SessionKey{App: tc.name, User: "user", Session: session}
				}
				var scripts []*script
				var commits []backends.Commit
				var condenses []backends.Condense
				for i := range 130 { // more than a batch, and a rest
					s := play(t, h.Store, key(fmt.Sprintf("s%d", i)))
					switch {
					case i < 3:
						s = write(t, h.Store, s.key)
					case i%7 > 0 && i < 10:
						s.observe(main, 1)
					case i < 10: // it is never written
					default: // one that nothing is in flight for
						_, err := h.Store.Commit(ctx(), s.key, s.commit(main, 1, ""))
						must(t, err)
						continue
					}
					scripts, commits = append(scripts, s), append(commits, s.next(main, 1))
					condenses = append(condenses, s.reflection(1, "note2"))
				}
				spared := write(t, h.Store, tc.spared)
				spared.unchanged(func() { must(t, tc.delete(key(""))) })
				if h.Rows != nil {
					for table, n := range h.Rows(tc.name, key("").User) {
						if n != 0 {
							t.Errorf("%d rows are left in %s", n, table)
						}
					}
				}
				for i, s := range scripts {
					gone(t, s, commits[i], condenses[i])
				}
				list, err := h.Store.ListSessions(ctx(), backends.SessionQuery{App: tc.name, User: "user"})
				if err != nil || len(list) > 0 {
					t.Errorf("sessions are left: %v, %v", list, err)
				}
				revived(t, scripts[0])
				revived(t, scripts[7])
				must(t, tc.delete(key("")))
				stale := commits[8]
				_, err = h.Store.Commit(ctx(), scripts[8].key, stale)
				is(t, "Commit after two deletions", err, backends.ErrConflict)
			}
		}},
		{"STO-3 a deletion of the app also stops work that started from the tombstone of a user", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			must(t, h.Store.DeleteUser(ctx(), s.key.App, s.key.User))
			commit := s.next(main, 1)
			must(t, h.Store.DeleteApp(ctx(), s.key.App))
			gone(t, s, commit, s.reflection(1, "note1"))
			commit = s.next(main, 1)
			must(t, h.Store.DeleteUser(ctx(), s.key.App, s.key.User))
			gone(t, s, commit, s.reflection(1, "note1"))
			revived(t, s)
		}},
		{"Sweep deletes idle sessions, then their tombstones, and nothing younger", func(t *testing.T, h Harness) {
			var idle []*script
			for i := range 105 {
				s := play(t, h.Store, keyOf(fmt.Sprintf("idle%d", i)))
				s.observe(main, 1)
				idle = append(idle, s)
			}
			commit := idle[0].next(main, 1)
			condense := idle[0].reflection(1, "note1")
			h.Age(3 * time.Hour)
			fresh := write(t, h.Store, keyOf("fresh"))
			sweep := func(idle time.Duration, want int) {
				t.Helper()
				fresh.unchanged(func() {
					if n, err := h.Store.Sweep(ctx(), idle); err != nil || n != want {
						t.Errorf("Sweep(%v) = %d, %v, want %d", idle, n, err, want)
					}
				})
			}
			sweep(0, 0)
			sweep(4*time.Hour, 0)
			sweep(2*time.Hour, 105)
			sweep(2*time.Hour, 0)
			gone(t, idle[0], commit, condense)
			revived(t, idle[0])
			h.Age(backends.TombstoneTTL - time.Minute)
			sweep(0, 0)
			if idle[1].load().Stamp == (backends.Stamp{}) {
				t.Error("a tombstone was swept before its time")
			}
			h.Age(2 * time.Minute)
			sweep(0, 0)
			same(t, "swept session", idle[1].load(), &backends.Snapshot{})
			if idle[0].load().Stamp == (backends.Stamp{}) {
				t.Error("a revived session was swept as a tombstone")
			}
		}},
		{"Sweep removes the tombstones of users and apps", func(t *testing.T, h Harness) {
			must(t, h.Store.DeleteUser(ctx(), "app", "user"))
			must(t, h.Store.DeleteApp(ctx(), "other"))
			h.Age(backends.TombstoneTTL + time.Minute)
			_, err := h.Store.Sweep(ctx(), 0)
			must(t, err)
			same(t, "session of the user", play(t, h.Store, keyOf("s")).load(), &backends.Snapshot{})
			other := backends.SessionKey{App: "other", User: "user", Session: "s"}
			same(t, "session of the app", play(t, h.Store, other).load(), &backends.Snapshot{})
		}},
	})
}
