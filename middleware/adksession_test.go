package middleware_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/adksession"
	"github.com/adkmemory/adkmemory/backends/sqlite"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/window"
)

// compacted runs a conversation of n turns, each with a tool call, on one database for sessions and memory, compacted
// while it runs, and returns the ids of all events ever appended.
func compacted(t *testing.T, n int, opts ...appOption) (*app, []string) {
	t.Helper()
	ctx := t.Context()
	store, err := sqlite.Open(ctx, t.TempDir()+"/memory.db")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	sessions, err := adksession.New(ctx, store.DB(), adksession.Config{Reader: store.Reader()})
	if err != nil {
		t.Fatal(err)
	}
	a := newApp(t, caller(), append([]appOption{with(func(c *appConfig) {
		c.store, c.sessions = store, sessions
		c.tools = []tool.Tool{lookup(t)}
		c.cfg.MessageTokenThreshold = 400
		c.cfg.MaxMessageTokenBudget = 3000
	})}, opts...)...)
	a.mem.SetCompactor(sessions.CompactMessages)
	var all []string
	for i := 1; i <= n; i++ {
		a.say(fmt.Sprintf("Look up %d.", i))
		a.settle()
		for _, e := range a.events(t) {
			if !window.IsSummary(e) && !slices.Contains(all, e.ID) {
				all = append(all, e.ID)
			}
		}
	}
	return a, all
}

func (a *app) events(t *testing.T) []*session.Event {
	t.Helper()
	got, err := a.session.Get(t.Context(), &session.GetRequest{AppName: a.key.App, UserID: a.key.User, SessionID: a.key.Session})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(got.Session.Events().All())
}

func TestCompactedSession(t *testing.T) {
	t.Parallel()
	a, all := compacted(t, 60)

	t.Run("CMP-1 CMP-3 observed messages give way to one summary, and the raw tail stays", func(t *testing.T) {
		events := a.events(t)
		if len(events) > len(all)/3 || !window.IsSummary(events[0]) {
			t.Fatalf("%d of %d events are left, the first is a summary: %v", len(events), len(all), window.IsSummary(events[0]))
		}
		if slices.ContainsFunc(events[1:], window.IsSummary) {
			t.Error("there is a second summary")
		}
		if got := events[len(events)-1].ID; got != all[len(all)-1] {
			t.Errorf("the newest event is %s, want %s", got, all[len(all)-1])
		}
		if s := a.mem.Stats(); s.Compactions == 0 || s.CompactFailures != 0 || s.ObserveFailures != 0 {
			t.Errorf("stats: %+v", s)
		}
	})

	t.Run("CMP-2 the last observed index is 0 after a compaction, and nothing is observed twice or skipped", func(t *testing.T) {
		if got := a.snapshot().Cursors[backends.Stream{}].Index; got != 0 {
			t.Errorf("the cursor's index is %d, want 0", got)
		}
		messages, err := a.store.ListMessages(t.Context(), a.key, backends.MessageQuery{Limit: backends.MaxListItems})
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range messages {
			if m.ID != all[i] {
				t.Fatalf("message %d is %s, want %s: it was observed twice or skipped", i, m.ID, all[i])
			}
		}
		if len(messages) < len(all)*3/4 {
			t.Errorf("only %d of %d messages were observed", len(messages), len(all))
		}
	})

	t.Run("CMP-1 the prompt shows the notes and not the summary as well", func(t *testing.T) {
		a.say("Thank you.")
		req := a.llm.last(t)
		if strings.Count(systemOf(req), "## Conversation Memory") != 1 {
			t.Error("the instruction has no memory section")
		}
		for _, c := range req.Contents {
			if strings.Contains(textOf(c), "## Conversation Memory") {
				t.Error("the summary is sent beside the notes that it was made of")
			}
		}
	})

	t.Run("RAW-9 outputs whose pair was compacted away stand in the section", func(t *testing.T) {
		t.Parallel()
		a, _ := compacted(t, 12, with(func(c *appConfig) { c.cfg.RawObservationBuffer = 9; c.cfg.MessageTokenThreshold = 300 }))
		a.say("Thank you.")
		pairs, section := shown(a.llm.last(t))
		got := append(slices.Clone(section), pairs...)
		if fmt.Sprint(got) != "[4 5 6 7 8 9 10 11 12]" || len(section) == 0 {
			t.Errorf("section %v and pairs %v, want the last nine once each", section, pairs)
		}
	})

	t.Run("RAW-9 a new process finds them in the archive", func(t *testing.T) {
		t.Parallel()
		a, _ := compacted(t, 30, with(func(c *appConfig) { c.cfg.RawObservationBuffer = 9; c.cfg.MessageTokenThreshold = 300 }))
		b := newApp(t, caller(), with(func(c *appConfig) {
			c.store, c.sessions = a.store, a.session
			c.tools = []tool.Tool{lookup(t)}
			c.cfg.RawObservationBuffer = 9
		}))
		b.say("Hello again.")
		pairs, section := shown(b.llm.last(t))
		if got := append(slices.Clone(section), pairs...); fmt.Sprint(got) != "[22 23 24 25 26 27 28 29 30]" {
			t.Errorf("section %v and pairs %v, want the last nine once each", section, pairs)
		}
	})

	t.Run("CMP-3 without a compactor all messages stay", func(t *testing.T) {
		t.Parallel()
		b := newApp(t, caller(), with(func(c *appConfig) {
			c.tools = []tool.Tool{lookup(t)}
			c.cfg = middleware.Config{Enabled: true, Extractive: true, MessageTokenThreshold: 300}
		}))
		for i := 1; i <= 10; i++ {
			b.say(fmt.Sprintf("Look up %d.", i))
		}
		b.settle()
		if got := len(b.events(t)); got != 40 || b.mem.Stats().Observations == 0 {
			t.Errorf("%d events, want 40, after %d observations", got, b.mem.Stats().Observations)
		}
	})
}
