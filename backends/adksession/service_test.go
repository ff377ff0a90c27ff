package adksession_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/session/sessiontestsuite"
	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/adksession"
)

func TestADKSuite(t *testing.T) { onEach(t, testADKSuite) }

func testADKSuite(t *testing.T, db database) {
	t.Run("OPS-2 ADK's own session suite", func(t *testing.T) {
		sessiontestsuite.RunServiceTests(t, sessiontestsuite.SuiteOptions{SupportsUserProvidedSessionID: true},
			func(t *testing.T) session.Service { return db.open(t) })
	})
	t.Run("OPS-2 ADK's own session suite without a cache", func(t *testing.T) {
		sessiontestsuite.RunServiceTests(t, sessiontestsuite.SuiteOptions{SupportsUserProvidedSessionID: true},
			func(t *testing.T) session.Service { return openAt(t, db.make(t), adksession.Config{CacheBytes: -1}) })
	})
}

func TestEventsOrder(t *testing.T) { onEach(t, testEventsOrder) }

func testEventsOrder(t *testing.T, db database) {
	t.Run("CMP-4 events keep the order in which they were appended, whatever their times", func(t *testing.T) {
		t.Parallel()
		path := db.make(t)
		s := openAt(t, path, adksession.Config{})
		sess := create(t, s)
		for n := range 10 {
			e := event(n, "inv", "agent")
			e.Timestamp = start.Add(-time.Duration(n/5) * time.Second) // two groups of one microsecond each, backwards
			add(t, s, sess, e)
		}
		want := idsFrom(0, 9)
		for name, got := range map[string]session.Session{
			"own": sess, "cached": get(t, s), "read": get(t, openAt(t, path, adksession.Config{})),
		} {
			if !slices.Equal(ids(got), want) {
				t.Errorf("%s: %v", name, ids(got))
			}
		}
	})
}

func TestFilters(t *testing.T) { onEach(t, testFilters) }

func testFilters(t *testing.T, db database) {
	path := db.make(t)
	s := openAt(t, path, adksession.Config{})
	addTurns(t, s, create(t, s), 0, 4) // e0 … e9
	tests := []struct {
		name   string
		recent int
		after  time.Time
		want   []string
	}{
		{"none", 0, time.Time{}, idsFrom(0, 9)},
		{"recent", 3, time.Time{}, idsFrom(7, 9)},
		{"more recent than there are", 30, time.Time{}, idsFrom(0, 9)},
		{"after includes the time itself", 0, start.Add(4 * time.Second), idsFrom(4, 9)},
		{"after between two microseconds", 0, start.Add(4*time.Second + time.Nanosecond), idsFrom(5, 9)},
		{"after all", 0, start.Add(time.Hour), nil},
		{"both", 2, start.Add(4 * time.Second), idsFrom(8, 9)},
		{"both, few after", 5, start.Add(8 * time.Second), idsFrom(8, 9)},
	}
	for _, tt := range tests {
		t.Run("CMP-4 filter "+tt.name, func(t *testing.T) {
			t.Parallel()
			for name, service := range map[string]*adksession.Service{
				"cached": s, "cold": openAt(t, path, adksession.Config{}),
			} {
				req := getRequest()
				req.NumRecentEvents, req.After = tt.recent, tt.after
				got, err := service.Get(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(ids(got.Session), tt.want) {
					t.Errorf("%s: got %v, want %v", name, ids(got.Session), tt.want)
				}
			}
		})
	}
}

func TestStale(t *testing.T) { onEach(t, testStale) }

func testStale(t *testing.T, db database) {
	t.Run("CMP-5 an append through an object that another append made stale is refused and changes nothing", func(t *testing.T) {
		t.Parallel()
		s := db.open(t)
		create(t, s)
		first, second := get(t, s), get(t, s)
		add(t, s, first, event(1, "a", "user"))
		e := event(2, "b", "user")
		e.Actions.StateDelta = map[string]any{"k": "v", "app:k": "v"}
		err := s.AppendEvent(t.Context(), second, e)
		if !errors.Is(err, adksession.ErrStale) || !strings.Contains(err.Error(), "stale session") {
			t.Errorf("err %v", err)
		}
		if second.Events().Len() != 0 {
			t.Error("the object holds the refused event")
		}
		got := get(t, s)
		if _, err := got.State().Get("k"); !errors.Is(err, session.ErrStateKeyNotExist) || !slices.Equal(ids(got), []string{"e1"}) {
			t.Errorf("state %v, events %v", err, ids(got))
		}
		add(t, s, first, event(3, "a", "agent"))
	})
	t.Run("SEC-1 an object of a deleted session cannot write into its successor", func(t *testing.T) {
		t.Parallel()
		s := db.open(t)
		old := create(t, s)
		add(t, s, old, event(1, "a", "user"))
		if err := s.Delete(t.Context(), &session.DeleteRequest{AppName: "app", UserID: "user", SessionID: "session"}); err != nil {
			t.Fatal(err)
		}
		if err := s.AppendEvent(t.Context(), old, event(2, "a", "agent")); !errors.Is(err, adksession.ErrNotFound) {
			t.Errorf("after deletion: %v", err)
		}
		fresh := create(t, s)
		add(t, s, fresh, event(3, "b", "user"))
		if err := s.AppendEvent(t.Context(), old, event(4, "a", "agent")); !errors.Is(err, adksession.ErrStale) {
			t.Errorf("after re-creation: %v", err)
		}
		if got := ids(get(t, s)); !slices.Equal(got, []string{"e3"}) {
			t.Errorf("events %v", got)
		}
	})
}

func TestCreate(t *testing.T) { onEach(t, testCreate) }

func testCreate(t *testing.T, db database) {
	t.Run("SEC-4 a taken session id and a bad one are refused", func(t *testing.T) {
		t.Parallel()
		s := db.open(t)
		create(t, s)
		req := &session.CreateRequest{AppName: "app", UserID: "user", SessionID: "session", State: map[string]any{"app:k": 1}}
		if _, err := s.Create(t.Context(), req); !errors.Is(err, adksession.ErrExists) {
			t.Errorf("taken: %v", err)
		}
		if _, err := get(t, s).State().Get("app:k"); err == nil {
			t.Error("a refused create wrote state")
		}
		req.SessionID = strings.Repeat("x", backends.MaxIDBytes+1)
		if _, err := s.Create(t.Context(), req); !errors.Is(err, backends.ErrInvalid) {
			t.Errorf("too long: %v", err)
		}
	})
}

func TestAppendRefuses(t *testing.T) { onEach(t, testAppendRefuses) }

func testAppendRefuses(t *testing.T, db database) {
	s := db.open(t)
	sess := create(t, s)
	add(t, s, sess, event(1, "a", "user"))
	big := event(2, "a", "user", &genai.Part{Text: strings.Repeat("x", backends.MaxMessageBytes)})
	unencodable := event(3, "a", "user")
	unencodable.Actions.StateDelta = map[string]any{"f": func() {}}
	for _, tt := range []struct {
		name string
		sess session.Session
		e    *session.Event
		want error
	}{
		{"nil session", nil, event(4, "a", "user"), backends.ErrInvalid},
		{"nil event", sess, nil, backends.ErrInvalid},
		{"an id that the session has", sess, event(1, "b", "user"), adksession.ErrExists},
		{"an event past the limit", sess, big, backends.ErrTooLarge},
		{"state that JSON cannot hold", sess, unencodable, backends.ErrInvalid},
	} {
		t.Run("SEC-4 "+tt.name, func(t *testing.T) {
			if err := s.AppendEvent(t.Context(), tt.sess, tt.e); !errors.Is(err, tt.want) {
				t.Errorf("err %v, want %v", err, tt.want)
			}
			if got := ids(get(t, s)); !slices.Equal(got, []string{"e1"}) || sess.Events().Len() != 1 {
				t.Errorf("events %v", got)
			}
		})
	}
	t.Run("CMP-4 an event without an id gets one, and its time is cut to the microsecond", func(t *testing.T) {
		e := &session.Event{Author: "user", Timestamp: start.Add(1234 * time.Nanosecond)}
		add(t, s, sess, e)
		if e.ID == "" || !e.Timestamp.Equal(start.Add(time.Microsecond)) {
			t.Errorf("id %q, time %v", e.ID, e.Timestamp)
		}
	})
}

func TestState(t *testing.T) { onEach(t, testState) }

func testState(t *testing.T, db database) {
	withState := func(n int, delta map[string]any) *session.Event {
		e := event(n, "inv", "agent")
		e.Actions.StateDelta = delta
		return e
	}
	value := func(sess session.Session, name string) any {
		v, _ := sess.State().Get(name)
		return v
	}
	t.Run("SEC-1 each scope is seen by whom it is meant for", func(t *testing.T) {
		t.Parallel()
		s := db.open(t)
		sess := create(t, s)
		add(t, s, sess, withState(1, map[string]any{"k": 1, "user:k": 2, "app:k": 3, "temp:k": 4}))
		if value(sess, "temp:k") != 4 || value(sess, "k") != 1 {
			t.Error("the running turn does not see its state")
		}
		want := map[[3]string][3]any{ // session state, user state, app state
			{"app", "user", "session"}:   {1.0, 2.0, 3.0},
			{"app", "user", "other"}:     {nil, 2.0, 3.0},
			{"app", "other", "session"}:  {nil, nil, 3.0},
			{"other", "user", "session"}: {nil, nil, nil},
		}
		for who := range want {
			_, err := s.Create(t.Context(), &session.CreateRequest{AppName: who[0], UserID: who[1], SessionID: who[2]})
			if err != nil && !errors.Is(err, adksession.ErrExists) {
				t.Fatal(err)
			}
		}
		check := func(sess session.Session) {
			values := want[[3]string{sess.AppName(), sess.UserID(), sess.ID()}]
			got := [3]any{value(sess, "k"), value(sess, "user:k"), value(sess, "app:k")}
			if got != values || value(sess, "temp:k") != nil {
				t.Errorf("%s/%s/%s sees %v, want %v", sess.AppName(), sess.UserID(), sess.ID(), got, values)
			}
		}
		for who := range want {
			got, err := s.Get(t.Context(), &session.GetRequest{AppName: who[0], UserID: who[1], SessionID: who[2]})
			if err != nil {
				t.Fatal(err)
			}
			check(got.Session)
		}
		for _, user := range []string{"", "user"} {
			list, err := s.List(t.Context(), &session.ListRequest{AppName: "app", UserID: user})
			if err != nil {
				t.Fatal(err)
			}
			if n := len(list.Sessions); n != 3 && user == "" || n != 2 && user != "" {
				t.Errorf("user %q: %d sessions", user, n)
			}
			for _, sess := range list.Sessions {
				check(sess)
			}
		}
	})
	t.Run("SEC-1 temporary state is not stored with the event either, and stays in the caller's", func(t *testing.T) {
		t.Parallel()
		place := db.make(t)
		s := openAt(t, place, adksession.Config{})
		e := withState(1, map[string]any{"temp:secret": "s", "k": "v"})
		add(t, s, create(t, s), e)
		for _, service := range []*adksession.Service{s, openAt(t, place, adksession.Config{})} {
			if got := get(t, service).Events().At(0).Actions.StateDelta; len(got) != 1 || got["k"] != "v" {
				t.Errorf("stored %v", got)
			}
		}
		if len(e.Actions.StateDelta) != 2 {
			t.Error("the caller's event was changed")
		}
	})
	t.Run("CMP-5 concurrent appends through one object take their turns", func(t *testing.T) {
		t.Parallel()
		s := db.open(t)
		sess := create(t, s)
		const n = 16
		errs := make(chan error, n)
		for i := range n {
			go func() { errs <- s.AppendEvent(context.WithoutCancel(t.Context()), sess, event(i, "inv", "agent")) }()
		}
		for range n {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if got := ids(get(t, s)); len(got) != n || !slices.Equal(got, ids(sess)) {
			t.Errorf("stored %v, the object has %v", got, ids(sess))
		}
	})
	t.Run("CMP-5 sessions that change different keys of their app at once lose nothing", func(t *testing.T) {
		t.Parallel()
		s := db.open(t)
		const n = 8
		errs := make(chan error, n)
		for i := range n {
			go func() {
				ctx := context.WithoutCancel(t.Context())
				created, err := s.Create(ctx, &session.CreateRequest{AppName: "app", UserID: "user", SessionID: fmt.Sprint(i)})
				if err == nil {
					delta := map[string]any{fmt.Sprint("app:k", i): i, fmt.Sprint("user:k", i): i, "app:same": i}
					err = s.AppendEvent(ctx, created.Session, withState(1, delta))
				}
				errs <- err
			}()
		}
		for range n {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		sess := create(t, s)
		for i := range n {
			if value(sess, fmt.Sprint("app:k", i)) != float64(i) || value(sess, fmt.Sprint("user:k", i)) != float64(i) {
				t.Errorf("key %d is lost", i)
			}
		}
	})
	t.Run("CMP-5 what is set on an object stays there", func(t *testing.T) {
		t.Parallel()
		s := db.open(t)
		sess := create(t, s)
		if err := sess.State().Set("k", 1); err != nil || value(sess, "k") != 1 {
			t.Error("not set")
		}
		if value(get(t, s), "k") != nil {
			t.Error("stored")
		}
		for name, v := range sess.State().All() {
			if name != "k" || v != 1 {
				t.Errorf("%s = %v", name, v)
			}
		}
	})
}
