package adksession_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool/toolconfirmation"
	"google.golang.org/genai"
	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/adksession"
	"github.com/adkmemory/adkmemory/middleware/window"
)

func isConflict(err error) bool { return errors.Is(err, backends.ErrConflict) }

// compact compacts up to the event with the given id and returns how many events went.
func compact(t *testing.T, s *adksession.Service, upTo string, summary string) int {
	t.Helper()
	index := slices.Index(ids(get(t, s)), upTo)
	if index < 0 {
		t.Fatalf("no event %s", upTo)
	}
	n, err := s.CompactMessages(t.Context(), testKey, index, upTo, summary)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func wantIDs(t *testing.T, sess session.Session, want ...string) {
	t.Helper()
	if got := ids(sess); !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
}

func withSummary(rest []string) []string { return append([]string{"summary"}, rest...) }

func TestCompactMessages(t *testing.T) { onEach(t, testCompactMessages) }

func testCompactMessages(t *testing.T, db database) {
	t.Run("CMP-4 messages 0 to upToIndex inclusive give way to an earlier summary", func(t *testing.T) {
		t.Parallel()
		path := db.make(t)
		s := openAt(t, path, adksession.Config{})
		sess := create(t, s)
		addTurns(t, s, sess, 0, 9)
		e := event(100, "state", "agent")
		e.Actions.StateDelta = map[string]any{"k": "kept"}
		add(t, s, sess, e)
		if n := compact(t, s, "e9", "what happened"); n != 10 {
			t.Errorf("%d events deleted", n)
		}
		for _, service := range []*adksession.Service{s, openAt(t, path, adksession.Config{})} {
			got := get(t, service)
			wantIDs(t, got, append(withSummary(idsFrom(10, 19)), "e100")...)
			summary := got.Events().At(0)
			if !summary.Timestamp.Before(got.Events().At(1).Timestamp) || summary.Author != "user" || summary.ID == "" ||
				summary.Content.Role != genai.RoleUser || summary.Content.Parts[0].Text != "what happened" {
				t.Errorf("summary %+v", summary)
			}
			if !window.IsSummary(summary) {
				t.Error("the middleware does not recognise the summary")
			}
			if v, _ := got.State().Get("k"); v != "kept" {
				t.Errorf("state %v", v)
			}
		}
	})
	t.Run("CMP-4 the summary is earlier than all that remains, also when times are not in order", func(t *testing.T) {
		t.Parallel()
		s := db.open(t)
		sess := create(t, s)
		addTurns(t, s, sess, 0, 8)
		late := event(50, "odd", "agent")
		late.Timestamp = start.Add(-time.Hour)
		add(t, s, sess, late)
		compact(t, s, "e3", "so far")
		got := get(t, s)
		for i := 1; i < got.Events().Len(); i++ {
			if !got.Events().At(0).Timestamp.Before(got.Events().At(i).Timestamp) {
				t.Errorf("the summary is not earlier than event %d", i)
			}
		}
	})
	t.Run("CMP-4 upToIndex 0 deletes nothing and still inserts the summary", func(t *testing.T) {
		t.Parallel()
		s := db.open(t)
		addTurns(t, s, create(t, s), 0, 5)
		for range 2 {
			n, err := s.CompactMessages(t.Context(), testKey, 0, "", "so far")
			if n != 0 || err != nil {
				t.Errorf("%d deleted, %v", n, err)
			}
			wantIDs(t, get(t, s), withSummary(idsFrom(0, 11))...)
		}
	})
	t.Run("CMP-4 an empty session takes a summary, and goes on", func(t *testing.T) {
		t.Parallel()
		s := db.open(t)
		sess := create(t, s)
		for range 2 {
			if _, err := s.CompactMessages(t.Context(), testKey, 0, "", "so far"); err != nil {
				t.Fatal(err)
			}
			wantIDs(t, get(t, s), "summary")
		}
		addTurns(t, s, sess, 0, 0)
		wantIDs(t, get(t, s), "summary", "e0", "e1")
	})
	t.Run("CMP-4 repeated compaction replaces the summary before", func(t *testing.T) {
		t.Parallel()
		s := db.open(t)
		addTurns(t, s, create(t, s), 0, 9)
		if n := compact(t, s, "e3", "first"); n != 4 {
			t.Errorf("%d deleted", n)
		}
		if n := compact(t, s, "e9", "second"); n != 6 {
			t.Errorf("%d deleted", n)
		}
		got := get(t, s)
		wantIDs(t, got, withSummary(idsFrom(10, 19))...)
		if text := got.Events().At(0).Content.Parts[0].Text; text != "second" {
			t.Errorf("summary %q", text)
		}
	})
	t.Run("CMP-4 another event at upToIndex, or none, is a conflict and changes nothing", func(t *testing.T) {
		t.Parallel()
		s := db.open(t)
		addTurns(t, s, create(t, s), 0, 9)
		for index, id := range map[int]string{3: "e4", 99: "e3", 20: "e19", 0: "e1"} {
			if _, err := s.CompactMessages(t.Context(), testKey, index, id, "so far"); !isConflict(err) {
				t.Errorf("%d %s: %v", index, id, err)
			}
		}
		wantIDs(t, get(t, s), idsFrom(0, 19)...)
	})
	t.Run("SEC-4 bad arguments are refused", func(t *testing.T) {
		t.Parallel()
		s := db.open(t)
		addTurns(t, s, create(t, s), 0, 9)
		for name, tt := range map[string]struct {
			key     backends.SessionKey
			index   int
			id, sum string
			want    error
		}{
			"negative":   {testKey, -1, "e0", "s", backends.ErrInvalid},
			"no id":      {testKey, 3, "", "s", backends.ErrInvalid},
			"no summary": {testKey, 3, "e3", "", backends.ErrInvalid},
			"too large":  {testKey, 3, "e3", strings.Repeat("x", backends.MaxTextBytes+1), backends.ErrTooLarge},
			"empty key":  {backends.SessionKey{}, 3, "e3", "s", backends.ErrInvalid},
			"no session": {backends.SessionKey{App: "app", User: "user", Session: "none"}, 3, "e3", "s", adksession.ErrNotFound},
			"other user": {backends.SessionKey{App: "app", User: "other", Session: "session"}, 3, "e3", "s", adksession.ErrNotFound},
			"other app":  {backends.SessionKey{App: "other", User: "user", Session: "session"}, 3, "e3", "s", adksession.ErrNotFound},
		} {
			if _, err := s.CompactMessages(t.Context(), tt.key, tt.index, tt.id, tt.sum); !errors.Is(err, tt.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		wantIDs(t, get(t, s), idsFrom(0, 19)...)
	})
	t.Run("CMP-4 a failure between two statements leaves everything as it was", func(t *testing.T) {
		t.Parallel()
		store := storeAt(t, db.make(t))
		s := openOn(t, store, adksession.Config{})
		addTurns(t, s, create(t, s), 0, 9)
		fault, failing := errors.New("disk on fire"), true
		err := store.DB().Callback().Raw().Before("gorm:raw").Register("fault", func(tx *gorm.DB) {
			if failing && strings.HasPrefix(tx.Statement.SQL.String(), "INSERT INTO adkmemory_adk_events") {
				_ = tx.AddError(fault)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.CompactMessages(t.Context(), testKey, 3, "e3", "so far"); !errors.Is(err, fault) {
			t.Fatalf("err %v", err)
		}
		wantIDs(t, get(t, s), idsFrom(0, 19)...)
		failing = false
		compact(t, s, "e3", "so far")
		wantIDs(t, get(t, s), withSummary(idsFrom(4, 19))...)
	})
}

func TestCompactionKeeps(t *testing.T) { onEach(t, testCompactionKeeps) }

func testCompactionKeeps(t *testing.T, db database) {
	call := func(id string) *genai.Part {
		return &genai.Part{FunctionCall: &genai.FunctionCall{ID: id, Name: "tool"}}
	}
	response := func(id string) *genai.Part {
		return &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: id, Name: "tool"}}
	}
	longRunning := func(e *session.Event, id string) *session.Event {
		e.LongRunningToolIDs = []string{id}
		return e
	}
	asks := func(e *session.Event, id string) *session.Event {
		e.Actions.RequestedToolConfirmations = map[string]toolconfirmation.ToolConfirmation{id: {}}
		return e
	}
	wantsInput := func(e *session.Event, id string) *session.Event {
		e.RequestedInput = &session.RequestInput{InterruptID: id}
		return e
	}
	tests := []struct {
		name   string
		events []*session.Event // followed by six turns of text, e100 … e111
		upTo   string
		want   []string // of events
	}{
		{"CMP-5 a call with its response goes",
			[]*session.Event{event(0, "a", "user"), event(1, "a", "agent", call("c")), event(2, "a", "agent", response("c"))},
			"e2", nil},
		{"CMP-5 half a pair never goes: the cut lies between call and response",
			[]*session.Event{event(0, "a", "user"), event(1, "a", "agent", call("c")), event(2, "a", "agent", response("c"))},
			"e1", []string{"e0", "e1", "e2"}},
		{"CMP-5 an invocation that the cut splits stays whole",
			[]*session.Event{event(0, "a", "user"), event(1, "a", "agent"), event(2, "b", "user"), event(3, "b", "agent")},
			"e2", []string{"e2", "e3"}},
		{"CMP-5 a pending call stays with its invocation, what is behind it goes",
			[]*session.Event{event(0, "a", "user"), event(1, "a", "agent", call("c")), event(2, "b", "user"), event(3, "b", "agent")},
			"e3", []string{"e0", "e1"}},
		{"CMP-5 one open call of several is enough",
			[]*session.Event{event(0, "a", "user"), event(1, "a", "agent", call("c"), call("d")), event(2, "a", "agent", response("c"))},
			"e2", []string{"e0", "e1", "e2"}},
		{"CMP-5 calls without ids are paired by name within their invocation",
			[]*session.Event{event(0, "a", "agent", call("")), event(1, "a", "agent", response("")), event(2, "b", "agent", call(""))},
			"e2", []string{"e2"}},
		{"CMP-5 another invocation's call of that name does not hide one without an id",
			[]*session.Event{event(0, "a", "agent", call("")), event(1, "b", "agent", call("")), event(2, "b", "agent", response(""))},
			"e2", []string{"e0"}},
		{"CMP-5 a long-running call waits for the user, whatever the tool said meanwhile",
			[]*session.Event{longRunning(event(0, "a", "agent", call("c")), "c"), event(1, "a", "agent", response("c")), event(2, "b", "user")},
			"e2", []string{"e0", "e1"}},
		{"CMP-5 an answered long-running call goes",
			[]*session.Event{longRunning(event(0, "a", "agent", call("c")), "c"), event(1, "a", "agent", response("c")),
				event(2, "b", "user", response("c")), event(3, "b", "agent")},
			"e3", nil},
		{"CMP-5 a call stays when the invocation that answers it stays, and what that one answers",
			[]*session.Event{longRunning(event(0, "a", "agent", call("c")), "c"),
				event(1, "b", "user", response("c")), longRunning(event(2, "b", "agent", call("d")), "d"), event(3, "x", "user"),
				event(4, "c", "user", response("d")), event(5, "c", "agent", call("open"))},
			"e5", []string{"e0", "e1", "e2", "e4", "e5"}},
		{"CMP-5 a requested confirmation waits for the call's own response",
			[]*session.Event{event(0, "a", "agent", call("c")), asks(event(1, "a", "agent", response("c")), "c"), event(2, "b", "user")},
			"e2", []string{"e0", "e1"}},
		{"CMP-5 a confirmed call goes",
			[]*session.Event{event(0, "a", "agent", call("c")), asks(event(1, "a", "agent", response("c")), "c"),
				event(2, "b", "user"), event(3, "b", "agent", response("c"))},
			"e3", nil},
		{"CMP-5 a requested input waits for its answer",
			[]*session.Event{wantsInput(event(0, "a", "agent"), "i"), event(1, "b", "user")},
			"e1", []string{"e0"}},
		{"CMP-5 an answered input goes",
			[]*session.Event{wantsInput(event(0, "a", "agent"), "i"), event(1, "b", "user", response("i"))},
			"e1", nil},
		{"CMP-5 events without an invocation stand for themselves",
			[]*session.Event{event(0, "", "user"), event(1, "", "agent", call("c")), event(2, "", "agent")},
			"e2", []string{"e1"}},
		{"CMP-5 a raw tail of recent turns stays, whatever is asked for",
			[]*session.Event{event(0, "a", "user")},
			"e111", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := db.open(t)
			sess := create(t, s)
			add(t, s, sess, tt.events...)
			addTurns(t, s, sess, 50, 55)
			tail := idsFrom(100, 111)
			if tt.upTo == "e111" {
				tail = idsFrom(106, 111)
			}
			before := ids(get(t, s))
			n := compact(t, s, tt.upTo, "so far")
			want := slices.Concat(tt.want, tail)
			if len(before)-len(want) != n {
				t.Errorf("%d deleted, want %d", n, len(before)-len(want))
			}
			if n > 0 {
				want = withSummary(want)
			}
			wantIDs(t, get(t, s), want...)
		})
	}
	t.Run("CMP-5 KeepTurns says how many turns the tail has", func(t *testing.T) {
		t.Parallel()
		s := openAt(t, db.make(t), adksession.Config{KeepTurns: 1})
		addTurns(t, s, create(t, s), 0, 4)
		compact(t, s, "e9", "so far")
		wantIDs(t, get(t, s), "summary", "e8", "e9")
	})
}
