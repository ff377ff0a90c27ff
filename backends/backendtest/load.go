package backendtest

import (
	"testing"

	"github.com/adkmemory/adkmemory/backends"
)

func runLoad(t *testing.T, open func(testing.TB) Harness) {
	runAll(t, open, []scenario{
		{"a session without state is an empty snapshot with the zero stamp", func(t *testing.T, h Harness) {
			same(t, "snapshot", play(t, h.Store, keyOf("s")).load(), &backends.Snapshot{})
		}},
		{"nil is returned while the stamp holds, and every write changes it", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			var stamps []backends.Stamp
			step := func(write func()) {
				t.Helper()
				write()
				snap := s.load()
				for _, old := range stamps {
					if got, err := s.store.Load(ctx(), s.key, old); err != nil || got == nil || got.Stamp != snap.Stamp {
						t.Errorf("Load with the old stamp %v = %v, %v", old, got, err)
					}
				}
				if again, err := s.store.Load(ctx(), s.key, snap.Stamp); err != nil || again != nil {
					t.Errorf("Load with the current stamp %v = %v, %v", snap.Stamp, again, err)
				}
				stamps = append(stamps, snap.Stamp)
			}
			step(func() { s.observe(backends.Stream{}, 2) })
			step(func() { s.observe(backends.Stream{Branch: "b"}, 1) })
			step(func() { s.condense(1, "note1") })
			step(func() {
				cursor := s.cursors[backends.Stream{}]
				if err := s.store.RebaseCursor(ctx(), s.key, s.load().Epoch, backends.Stream{}, cursor); err != nil {
					t.Fatal(err)
				}
			})
			step(func() { must(t, s.store.DeleteObservationsBySession(ctx(), s.key)) })
			step(func() { must(t, s.store.DeleteReflectionsBySession(ctx(), s.key)) })
			step(func() { must(t, s.store.DeleteSession(ctx(), s.key)) })
			step(func() { must(t, s.store.DeleteUser(ctx(), s.key.App, s.key.User)) })
			step(func() { must(t, s.store.DeleteApp(ctx(), s.key.App)) })
			if got, err := s.store.Load(ctx(), keyOf("unwritten"), backends.Stamp{Epoch: "other", Version: 1}); err != nil || got == nil {
				t.Errorf("Load of another session with a stamp = %v, %v", got, err)
			}
		}},
		{"a version grows by one with every write", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			s.observe(backends.Stream{}, 1)
			first := s.load().Stamp
			s.observe(backends.Stream{}, 1)
			same(t, "stamp", s.load().Stamp, backends.Stamp{Epoch: first.Epoch, Version: first.Version + 1})
		}},
		{"active notes come back whole, in order, with every stream's cursor", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			branch := backends.Stream{Branch: "root.child", Scope: "scope"}
			one, two, three := s.observe(backends.Stream{}, 2), s.observe(branch, 1), s.observe(backends.Stream{}, 3)
			snap := s.load()
			same(t, "observations", snap.Observations, []backends.Observation{one, two, three})
			want := map[backends.Stream]backends.Cursor{}
			for stream, cursor := range s.cursors {
				cursor.Time = backends.CleanTime(cursor.Time)
				want[stream] = cursor
			}
			same(t, "cursors", snap.Cursors, want)

			reflection := s.condense(1, one.ID, three.ID)
			snap = s.load()
			same(t, "observations left", snap.Observations, []backends.Observation{two})
			same(t, "reflections", snap.Reflections, []backends.Reflection{reflection})
		}},
		{"a snapshot shares nothing with the store", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			s.observe(backends.Stream{}, 1)
			s.condense(1, "note1")
			s.unchanged(func() {
				got := s.state()
				got.Snapshot.Cursors[backends.Stream{}] = backends.Cursor{}
				got.Snapshot.Reflections[0].Text = "changed"
				got.Snapshot.Reflections[0].Sources[0] = "changed"
				got.Notes[1].Sources[0] = "changed"
				got.Messages[0].Content[0] = 'X'
			})
		}},
		{"another process sees a commit as soon as it returned", func(t *testing.T, h Harness) {
			if h.Another == nil {
				t.Skip("the store lives in one process")
			}
			s, other := play(t, h.Store, keyOf("s")), play(t, h.Another(), keyOf("s"))
			for range 5 {
				s.observe(backends.Stream{}, 1)
				same(t, "state", other.state(), s.state())
			}
		}},
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
