package backendtest

import (
	"fmt"
	"testing"

	"github.com/adkmemory/adkmemory/backends"
)

// Bench measures what a turn asks of a store. The session holds a thousand archived messages and 20 active notes.
func Bench(b *testing.B, open func(testing.TB) Harness) {
	main := backends.Stream{}
	filled := func(b *testing.B) *script {
		s := play(b, open(b).Store, keyOf("s"))
		for range 100 {
			s.observe(main, 10)
		}
		for i := range 80 {
			s.condense(1, fmt.Sprintf("note%d", i+1))
		}
		must(b, s.store.DeleteReflectionsBySession(ctx(), s.key))
		return s
	}
	b.Run("LoadUnchanged", func(b *testing.B) {
		s := filled(b)
		stamp := s.load().Stamp
		for b.Loop() {
			if snap, err := s.store.Load(ctx(), s.key, stamp); err != nil || snap != nil {
				b.Fatal(snap, err)
			}
		}
	})
	b.Run("LoadChanged", func(b *testing.B) {
		s := filled(b)
		for b.Loop() {
			if snap := s.load(); len(snap.Observations) != 20 {
				b.Fatal(snap)
			}
		}
	})
	b.Run("Commit", func(b *testing.B) {
		s := play(b, open(b).Store, keyOf("s"))
		s.observe(main, 10)
		epoch := s.load().Epoch
		for b.Loop() {
			b.StopTimer()
			c := s.next(main, 10)
			c.Epoch = epoch
			b.StartTimer()
			if _, err := s.store.Commit(ctx(), s.key, c); err != nil {
				b.Fatal(err)
			}
			s.cursors[main] = c.To
		}
	})
	b.Run("ListMessages", func(b *testing.B) {
		s := filled(b)
		for b.Loop() {
			if _, err := s.store.ListMessages(ctx(), s.key, backends.MessageQuery{ObservationID: "note50"}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("ListRecentObservations", func(b *testing.B) {
		s := filled(b)
		for b.Loop() {
			if _, err := s.store.ListRecentObservations(ctx(), s.key, 20); err != nil {
				b.Fatal(err)
			}
		}
	})
}
