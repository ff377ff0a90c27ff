package adksession_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/genai"
	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends/adksession"
)

func TestCompactionBesideATurn(t *testing.T) { onEach(t, testCompactionBesideATurn) }

func testCompactionBesideATurn(t *testing.T, db database) {
	t.Run("CMP-5 a running turn appends through the object it has, and loses nothing", func(t *testing.T) {
		t.Parallel()
		path := db.make(t)
		s, other := openAt(t, path, adksession.Config{}), openAt(t, path, adksession.Config{})
		addTurns(t, s, create(t, s), 0, 9)
		running := get(t, s)
		add(t, s, running, event(20, "now", "user"))
		if n := compact(t, other, "e9", "so far"); n != 10 {
			t.Errorf("%d deleted", n)
		}
		add(t, s, running, event(21, "now", "agent"))
		compact(t, other, "e11", "more")
		add(t, s, running, event(22, "now", "agent"))
		wantIDs(t, running, idsFrom(0, 22)...)
		for _, service := range []*adksession.Service{s, other} {
			wantIDs(t, get(t, service), withSummary(idsFrom(12, 22))...)
		}
	})
	t.Run("CMP-5 what is appended between the look and the deletion is looked at", func(t *testing.T) {
		t.Parallel()
		place := db.make(t)
		s, store := openAt(t, place, adksession.Config{}), storeAt(t, place)
		compactor := openOn(t, store, adksession.Config{})
		running := create(t, s)
		addTurns(t, s, running, 0, 9)
		get(t, compactor)
		// An old invocation goes on with a call, just after the compactor has read the session.
		late := event(50, "inv1", "agent", &genai.Part{FunctionCall: &genai.FunctionCall{ID: "c", Name: "tool"}})
		once := true
		err := store.Reader().Callback().Row().After("gorm:row").Register("late", func(*gorm.DB) {
			if once {
				once = false
				add(t, s, running, late)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := compactor.CompactMessages(t.Context(), testKey, 9, "e9", "so far"); err != nil || n != 8 {
			t.Errorf("%d deleted, %v", n, err)
		}
		wantIDs(t, get(t, s), slices.Concat([]string{"summary", "e2", "e3"}, idsFrom(10, 19), []string{"e50"})...)
	})
	t.Run("CMP-5 turns and compactions at the same time", func(t *testing.T) {
		t.Parallel()
		s := db.open(t)
		create(t, s)
		done := make(chan error, 1)
		const turns = 60
		go func() {
			defer close(done)
			for n := range turns {
				got, err := s.Get(context.Background(), getRequest())
				if err != nil {
					done <- err
					return
				}
				for _, e := range turn(n) {
					if err := s.AppendEvent(context.Background(), got.Session, e); err != nil {
						done <- fmt.Errorf("turn %d: %w", n, err)
						return
					}
				}
			}
		}()
		compacted := 0
		for running := true; running; {
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
				running = false
			default:
				sess := get(t, s)
				last := sess.Events().Len() - 1
				if last < 1 {
					continue
				}
				n, err := s.CompactMessages(t.Context(), testKey, last, sess.Events().At(last).ID, "so far")
				if err != nil && !isConflict(err) {
					t.Error(err)
				}
				compacted += n
			}
		}
		got := ids(get(t, s))
		if len(got) != 2*turns-compacted+1 || compacted == 0 || !slices.Equal(got[1:], idsFrom(compacted, 2*turns-1)) {
			t.Errorf("%d compacted, %v remain", compacted, got)
		}
	})
}
