package adksession_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"
	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends/adksession"
)

// counting opens a service that counts its reads, and the rows of events among them.
func counting(t testing.TB, place string, cfg adksession.Config) (s *adksession.Service, queries, events *atomic.Int64) {
	t.Helper()
	store := storeAt(t, place)
	queries, events = new(atomic.Int64), new(atomic.Int64)
	count := func(tx *gorm.DB) {
		queries.Add(1)
		if strings.Contains(tx.Statement.SQL.String(), "adkmemory_adk_events") {
			events.Add(1)
		}
	}
	if err := store.Reader().Callback().Row().After("gorm:row").Register("count", count); err != nil {
		t.Fatal(err)
	}
	return openOn(t, store, cfg), queries, events
}

func TestCache(t *testing.T) { onEach(t, testCache) }

func testCache(t *testing.T, db database) {
	t.Run("OPS-2 a Get is one query when nothing was written elsewhere, also after own appends", func(t *testing.T) {
		t.Parallel()
		s, queries, _ := counting(t, db.make(t), adksession.Config{})
		create(t, s)
		queries.Store(0)
		for n := range 5 {
			sess := get(t, s)
			wantIDs(t, sess, idsFrom(0, 2*n-1)...)
			addTurns(t, s, sess, n, n)
		}
		if queries.Load() != 5 {
			t.Errorf("%d queries for 5 turns", queries.Load())
		}
	})
	t.Run("STO-4 appends, compaction, deletion and re-creation elsewhere are seen", func(t *testing.T) {
		t.Parallel()
		path := db.make(t)
		a, b := openAt(t, path, adksession.Config{}), openAt(t, path, adksession.Config{})
		create(t, a)
		addTurns(t, a, get(t, a), 0, 4)
		wantIDs(t, get(t, b), idsFrom(0, 9)...)
		addTurns(t, b, get(t, b), 5, 5)
		wantIDs(t, get(t, a), idsFrom(0, 11)...)
		addTurns(t, a, get(t, a), 6, 6)
		wantIDs(t, get(t, b), idsFrom(0, 13)...)
		compact(t, a, "e3", "so far")
		wantIDs(t, get(t, b), withSummary(idsFrom(4, 13))...)
		if err := a.Delete(t.Context(), &session.DeleteRequest{AppName: "app", UserID: "user", SessionID: "session"}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Get(t.Context(), getRequest()); err == nil {
			t.Error("a deleted session was found")
		}
		for range 2 { // the second time with as many events as before
			addTurns(t, a, create(t, a), 0, 6)
			first := get(t, b).Events().At(0)
			wantIDs(t, get(t, b), idsFrom(0, 13)...)
			err := a.Delete(t.Context(), &session.DeleteRequest{AppName: "app", UserID: "user", SessionID: "session"})
			if err != nil {
				t.Fatal(err)
			}
			addTurns(t, a, create(t, a), 0, 6)
			if get(t, b).Events().At(0) == first {
				t.Error("an event of the deleted session is shown")
			}
			err = a.Delete(t.Context(), &session.DeleteRequest{AppName: "app", UserID: "user", SessionID: "session"})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("OPS-2 after a write elsewhere only what is new is read", func(t *testing.T) {
		t.Parallel()
		path := db.make(t)
		writer := openAt(t, path, adksession.Config{})
		s, _, reads := counting(t, path, adksession.Config{})
		addTurns(t, writer, create(t, writer), 0, 4)
		first := get(t, s)
		addTurns(t, writer, get(t, writer), 5, 5)
		second := get(t, s)
		if reads.Load() != 2 || first.Events().Len() != 10 || second.Events().Len() != 12 {
			t.Errorf("%d reads, %d and %d events", reads.Load(), first.Events().Len(), second.Events().Len())
		}
		if first.Events().At(3) != second.Events().At(3) {
			t.Error("an event was decoded twice")
		}
	})
	t.Run("SEC-4 the cache is bounded, and what it evicts is read again", func(t *testing.T) {
		t.Parallel()
		s, _, reads := counting(t, db.make(t), adksession.Config{CacheBytes: 40_000})
		const sessions = 20
		at := func(i int) *session.GetRequest {
			return &session.GetRequest{AppName: "app", UserID: "user", SessionID: fmt.Sprint(i)}
		}
		for i := range sessions {
			created, err := s.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "user", SessionID: fmt.Sprint(i)})
			if err != nil {
				t.Fatal(err)
			}
			addTurns(t, s, created.Session, 0, 1) // about 6 kB decoded
		}
		for i := range sessions {
			got, err := s.Get(t.Context(), at(i))
			if err != nil {
				t.Fatal(err)
			}
			wantIDs(t, got.Session, idsFrom(0, 3)...)
		}
		if reads.Load() < sessions/2 {
			t.Errorf("only %d of %d sessions were read again", reads.Load(), sessions)
		}
		before := reads.Load()
		if _, err := s.Get(t.Context(), at(sessions-1)); err != nil || reads.Load() != before {
			t.Errorf("the session used last is not cached, %v", err)
		}
	})
	t.Run("SEC-4 a session larger than the cache is served without it", func(t *testing.T) {
		t.Parallel()
		s := openAt(t, db.make(t), adksession.Config{CacheBytes: 10_000})
		sess := create(t, s)
		add(t, s, sess, event(0, "a", "user", &genai.Part{Text: strings.Repeat("x", 20_000)}), event(1, "a", "agent"))
		wantIDs(t, get(t, s), "e0", "e1")
		addTurns(t, s, get(t, s), 1, 1)
		wantIDs(t, get(t, s), idsFrom(0, 3)...)
	})
	t.Run("CMP-5 a session object does not change when others read and append", func(t *testing.T) {
		t.Parallel()
		s := db.open(t)
		addTurns(t, s, create(t, s), 0, 1)
		first := get(t, s)
		events := first.Events()
		addTurns(t, s, get(t, s), 2, 3)
		_ = get(t, s)
		if err := s.AppendEvent(t.Context(), first, event(99, "x", "user")); err == nil {
			t.Error("a stale append went through")
		}
		wantIDs(t, first, idsFrom(0, 3)...)
		wantIDs(t, get(t, s), idsFrom(0, 7)...)
		if events.Len() != 4 || events.At(-1) != nil || events.At(4) != nil {
			t.Error("the event list is not what it was")
		}
	})
	t.Run("CMP-5 the cache does not share the caller's event", func(t *testing.T) {
		t.Parallel()
		s := db.open(t)
		sess := create(t, s)
		e := event(0, "a", "user")
		add(t, s, sess, e)
		e.Content.Parts[0].Text = "changed"
		if got := get(t, s).Events().At(0).Content.Parts[0].Text; got != "text 0" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("CMP-5 many readers and one writer", func(t *testing.T) {
		t.Parallel()
		path := db.make(t)
		s, other := openAt(t, path, adksession.Config{}), openAt(t, path, adksession.Config{})
		sess := create(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 4 {
			service := []*adksession.Service{s, other}[i%2]
			wg.Go(func() {
				for ctx.Err() == nil {
					got, err := service.Get(context.Background(), getRequest())
					if err != nil {
						t.Error(err)
						return
					}
					if have := ids(got.Session); !slices.Equal(have, idsFrom(0, len(have)-1)) {
						t.Errorf("events %v", have)
						return
					}
				}
			})
		}
		addTurns(t, s, sess, 0, 30)
		cancel()
		wg.Wait()
	})
}
