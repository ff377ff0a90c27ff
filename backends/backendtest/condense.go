package backendtest

import (
	"testing"

	"github.com/adkmemory/adkmemory/backends"
)

func runCondense(t *testing.T, open func(testing.TB) Harness) {
	main := backends.Stream{}
	runAll(t, open, []scenario{
		{"REF-2 the reflection takes exactly its sources out of the active set", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			one, two, three := s.observe(main, 1), s.observe(main, 1), s.observe(main, 1)
			c := s.reflection(1, one.ID, two.ID)
			got, err := s.store.Condense(ctx(), s.key, c)
			must(t, err)
			want := c.Clean().Reflection
			want.Seq = 4
			same(t, "reflection", got, want)
			snap := s.load()
			same(t, "observations", snap.Observations, []backends.Observation{three})
			same(t, "reflections", snap.Reflections, []backends.Reflection{want})
		}},
		{"REF-4 condensed notes move to the archive, and know their parent", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			one, two := s.observe(main, 1), s.observe(main, 1)
			before := s.state()
			reflection := s.condense(1, one.ID, two.ID)
			got := s.state()
			same(t, "notes", got.Notes, []backends.StoredNote{
				{Note: one.Note, ParentID: reflection.ID},
				{Note: two.Note, ParentID: reflection.ID},
				{Note: reflection.Note, Generation: 1, Sources: []string{one.ID, two.ID}, Active: true},
			})
			same(t, "messages", got.Messages, before.Messages)
		}},
		{"REF-4 discarded notes are gone, their messages are not", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			one, two := s.observe(main, 1), s.observe(main, 1)
			before := s.state()
			c := s.reflection(1, one.ID)
			c.Discard = true
			_, err := s.store.Condense(ctx(), s.key, c)
			must(t, err)
			got := s.state()
			same(t, "notes", ids(got.Notes, noteID), []string{two.ID, c.Reflection.ID})
			same(t, "messages", got.Messages, before.Messages)
		}},
		{"REF-3 reflections are condensed into the next generation", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			for range 3 {
				s.observe(main, 1)
			}
			first := s.condense(1, "note1")
			second := s.condense(2, first.ID)
			third := s.condense(1, "note2")
			wrong := s.reflection(2, second.ID, third.ID)
			s.unchanged(func() {
				_, err := s.store.Condense(ctx(), s.key, wrong)
				is(t, "generation 2 over generations 2 and 1", err, backends.ErrInvalid)
			})
			got := s.condense(3, third.ID, second.ID)
			same(t, "sources", got.Sources, []string{third.ID, second.ID})
			same(t, "reflections", s.load().Reflections, []backends.Reflection{got})
			same(t, "observations", ids(s.load().Observations, observationID), []string{"note3"})
		}},
		{"REF-2 a source that is not active is a conflict, and nothing is written", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			one, two := s.observe(main, 1), s.observe(main, 1)
			other := play(t, h.Store, keyOf("other"))
			other.notes = 100
			other.observe(main, 1)
			s.condense(1, one.ID)
			for _, sources := range [][]string{{one.ID, two.ID}, {two.ID, "unknown"}, {two.ID, "note101"}} {
				c := s.reflection(1, sources...)
				s.unchanged(func() {
					_, err := s.store.Condense(ctx(), s.key, c)
					is(t, "Condense", err, backends.ErrConflict)
				})
			}
		}},
		{"REF-2 another epoch or a known id is a conflict, and nothing is written", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			one := s.observe(main, 1)
			epoch, id := s.reflection(1, one.ID), s.reflection(1, one.ID)
			epoch.Epoch, id.Reflection.ID = "other", one.ID
			for _, c := range []backends.Condense{epoch, id} {
				s.unchanged(func() {
					_, err := s.store.Condense(ctx(), s.key, c)
					is(t, "Condense", err, backends.ErrConflict)
				})
			}
			never := play(t, h.Store, keyOf("never written"))
			_, err := never.store.Condense(ctx(), never.key, never.reflection(1, one.ID))
			is(t, "Condense of a session without state", err, backends.ErrConflict)
			same(t, "snapshot", never.load(), &backends.Snapshot{})
		}},
		{"REF-2 sources of two kinds or two streams are refused", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			s.observe(main, 1)
			s.observe(main, 1)
			s.observe(backends.Stream{Branch: "b"}, 1)
			reflection := s.condense(1, "note1")
			for _, c := range []backends.Condense{s.reflection(2, reflection.ID, "note2"), s.reflection(1, "note2", "note3")} {
				s.unchanged(func() {
					_, err := s.store.Condense(ctx(), s.key, c)
					is(t, "Condense", err, backends.ErrInvalid)
				})
			}
		}},
	})
}
