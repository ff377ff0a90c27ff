package backendtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

// call is one call of a method for a session.
type call struct {
	method string
	do     func(ctx context.Context, store backends.Store, key backends.SessionKey) error
}

// calls holds a valid call of every method that takes a context.
func calls(c backends.Commit) []call {
	main := backends.Stream{}
	list := []call{
		{"Load", func(ctx context.Context, s backends.Store, k backends.SessionKey) error {
			_, err := s.Load(ctx, k, backends.Stamp{})
			return err
		}},
		{"Commit", func(ctx context.Context, s backends.Store, k backends.SessionKey) error {
			_, err := s.Commit(ctx, k, c)
			return err
		}},
		{"Condense", func(ctx context.Context, s backends.Store, k backends.SessionKey) error {
			_, err := s.Condense(ctx, k, backends.Condense{
				Reflection: backends.Reflection{Note: c.Observation.Note, Generation: 1, Sources: []string{"note1"}},
			})
			return err
		}},
		{"RebaseCursor", func(ctx context.Context, s backends.Store, k backends.SessionKey) error {
			return s.RebaseCursor(ctx, k, "", main, c.To)
		}},
		{"ListRecentObservations", func(ctx context.Context, s backends.Store, k backends.SessionKey) error {
			_, err := s.ListRecentObservations(ctx, k, 1)
			return err
		}},
		{"ListRecentReflections", func(ctx context.Context, s backends.Store, k backends.SessionKey) error {
			_, err := s.ListRecentReflections(ctx, k, 1)
			return err
		}},
		{"ListMessages", func(ctx context.Context, s backends.Store, k backends.SessionKey) error {
			_, err := s.ListMessages(ctx, k, backends.MessageQuery{})
			return err
		}},
		{"ListNotes", func(ctx context.Context, s backends.Store, k backends.SessionKey) error {
			_, err := s.ListNotes(ctx, k, backends.NoteQuery{})
			return err
		}},
		{"DeleteObservationsBySession", func(ctx context.Context, s backends.Store, k backends.SessionKey) error {
			return s.DeleteObservationsBySession(ctx, k)
		}},
		{"DeleteReflectionsBySession", func(ctx context.Context, s backends.Store, k backends.SessionKey) error {
			return s.DeleteReflectionsBySession(ctx, k)
		}},
		{"DeleteSession", func(ctx context.Context, s backends.Store, k backends.SessionKey) error {
			return s.DeleteSession(ctx, k)
		}},
		{"Lease", func(ctx context.Context, s backends.Store, k backends.SessionKey) error {
			_, err := s.Lease(ctx, k, "owner", time.Minute)
			return err
		}},
		{"Release", func(ctx context.Context, s backends.Store, k backends.SessionKey) error {
			return s.Release(ctx, k, "owner")
		}},
	}
	return append(list, call{"AppendMessages", func(ctx context.Context, s backends.Store, k backends.SessionKey) error {
		if appender, ok := s.(backends.Appender); ok {
			_, err := appender.AppendMessages(ctx, k, main, c.Messages)
			return err
		}
		return k.Validate()
	}})
}

// appCalls are the calls that name no session.
func appCalls() []call {
	return []call{
		{"ListSessions", func(ctx context.Context, s backends.Store, k backends.SessionKey) error {
			_, err := s.ListSessions(ctx, backends.SessionQuery{App: k.App})
			return err
		}},
		{"DeleteUser", func(ctx context.Context, s backends.Store, k backends.SessionKey) error {
			return s.DeleteUser(ctx, k.App, k.User)
		}},
		{"DeleteApp", func(ctx context.Context, s backends.Store, k backends.SessionKey) error {
			return s.DeleteApp(ctx, k.App)
		}},
		{"Sweep", func(ctx context.Context, s backends.Store, _ backends.SessionKey) error {
			_, err := s.Sweep(ctx, time.Hour)
			return err
		}},
	}
}

func runLimits(t *testing.T, open func(testing.TB) Harness) {
	main := backends.Stream{}
	long := strings.Repeat("x", backends.MaxIDBytes+1)
	runAll(t, open, []scenario{
		{"SEC-4 a key that is empty, too long, not UTF-8 or holds a NUL is refused by every method", func(t *testing.T, h Harness) {
			c := play(t, h.Store, keyOf("s")).next(main, 1)
			for name, bad := range map[string]string{"empty": "", "long": long, "no UTF-8": "a\xff", "NUL": "a\x00b"} {
				for _, key := range []backends.SessionKey{
					{App: bad, User: "user", Session: "s"}, {App: "app", User: bad, Session: "s"}, {App: "app", User: "user", Session: bad},
				} {
					for _, call := range calls(c) {
						is(t, call.method+" with a key that is "+name, call.do(ctx(), h.Store, key), backends.ErrInvalid)
					}
				}
				is(t, "DeleteUser of an app that is "+name, h.Store.DeleteUser(ctx(), bad, "user"), backends.ErrInvalid)
				is(t, "DeleteUser of a user that is "+name, h.Store.DeleteUser(ctx(), "app", bad), backends.ErrInvalid)
				is(t, "DeleteApp of an app that is "+name, h.Store.DeleteApp(ctx(), bad), backends.ErrInvalid)
				_, err := h.Store.ListSessions(ctx(), backends.SessionQuery{App: bad})
				is(t, "ListSessions of an app that is "+name, err, backends.ErrInvalid)
				_, err = h.Store.Lease(ctx(), keyOf("s"), bad, time.Minute)
				is(t, "Lease for an owner that is "+name, err, backends.ErrInvalid)
				if bad != "" {
					_, err = h.Store.ListSessions(ctx(), backends.SessionQuery{App: "app", User: bad})
					is(t, "ListSessions of a user that is "+name, err, backends.ErrInvalid)
				}
			}
		}},
		{"SEC-4 what is past a limit is refused whole", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			s.observe(main, 1)
			many := make([]string, backends.MaxSources+1)
			for i := range many {
				many[i] = fmt.Sprint(i)
			}
			s.unchanged(func() {
				for name, tc := range map[string]struct {
					change func(*backends.Commit)
					want   error
				}{
					"note too long":        {func(c *backends.Commit) { c.Observation.Text = strings.Repeat("x", backends.MaxTextBytes+1) }, backends.ErrTooLarge},
					"empty note":           {func(c *backends.Commit) { c.Observation.Text = "" }, backends.ErrInvalid},
					"note without id":      {func(c *backends.Commit) { c.Observation.ID = "" }, backends.ErrInvalid},
					"branch too long":      {func(c *backends.Commit) { c.Observation.Stream.Branch = long }, backends.ErrInvalid},
					"epoch no UTF-8":       {func(c *backends.Commit) { c.Epoch = "a\xff" }, backends.ErrInvalid},
					"cursor with a NUL":    {func(c *backends.Commit) { c.From.MessageID = "a\x00" }, backends.ErrInvalid},
					"writer too long":      {func(c *backends.Commit) { c.Observation.Writer = long }, backends.ErrInvalid},
					"fingerprint too long": {func(c *backends.Commit) { c.To.Fingerprint = long }, backends.ErrInvalid},
					"no cursor":            {func(c *backends.Commit) { c.To = backends.Cursor{} }, backends.ErrInvalid},
					"message without id":   {func(c *backends.Commit) { c.Messages[0].ID = "" }, backends.ErrInvalid},
					"author too long":      {func(c *backends.Commit) { c.Messages[0].Author = long }, backends.ErrInvalid},
					"message twice":        {func(c *backends.Commit) { c.Messages = append(c.Messages, c.Messages[0]) }, backends.ErrInvalid},
					"message too long": {func(c *backends.Commit) {
						c.Messages[0].Content = make([]byte, backends.MaxMessageBytes+1)
					}, backends.ErrTooLarge},
					"too many messages": {func(c *backends.Commit) {
						c.Messages = make([]backends.Message, backends.MaxCommitMessages+1)
					}, backends.ErrTooLarge},
				} {
					c := s.next(main, 1)
					tc.change(&c)
					_, err := h.Store.Commit(ctx(), s.key, c)
					is(t, name, err, tc.want)
				}
				for name, tc := range map[string]struct {
					change func(*backends.Condense)
					want   error
				}{
					"no sources":       {func(c *backends.Condense) { c.Reflection.Sources = nil }, backends.ErrInvalid},
					"source twice":     {func(c *backends.Condense) { c.Reflection.Sources = []string{"note1", "note1"} }, backends.ErrInvalid},
					"too many sources": {func(c *backends.Condense) { c.Reflection.Sources = many }, backends.ErrTooLarge},
					"no generation":    {func(c *backends.Condense) { c.Reflection.Generation = 0 }, backends.ErrInvalid},
					"empty":            {func(c *backends.Condense) { c.Reflection.Text = "" }, backends.ErrInvalid},
				} {
					c := s.reflection(1, "note1")
					tc.change(&c)
					_, err := h.Store.Condense(ctx(), s.key, c)
					is(t, name, err, tc.want)
				}
			})
		}},
		{"SEC-4 a page has a bounded length", func(t *testing.T, h Harness) {
			for limit, want := range map[int]error{-1: backends.ErrInvalid, backends.MaxListItems + 1: backends.ErrTooLarge} {
				_, err := h.Store.ListMessages(ctx(), keyOf("s"), backends.MessageQuery{Limit: limit})
				is(t, "ListMessages", err, want)
				_, err = h.Store.ListNotes(ctx(), keyOf("s"), backends.NoteQuery{Limit: limit})
				is(t, "ListNotes", err, want)
				_, err = h.Store.ListSessions(ctx(), backends.SessionQuery{App: "app", Limit: limit})
				is(t, "ListSessions", err, want)
			}
			_, err := h.Store.ListNotes(ctx(), keyOf("s"), backends.NoteQuery{IDs: make([]string, backends.MaxListItems+1)})
			is(t, "ListNotes of too many ids", err, backends.ErrTooLarge)
			for _, bad := range []string{long, "a\xff", "a\x00b"} {
				_, err = h.Store.ListNotes(ctx(), keyOf("s"), backends.NoteQuery{IDs: []string{bad}})
				is(t, "ListNotes", err, backends.ErrInvalid)
				_, err = h.Store.ListMessages(ctx(), keyOf("s"), backends.MessageQuery{ObservationID: bad})
				is(t, "ListMessages", err, backends.ErrInvalid)
				err = h.Store.RebaseCursor(ctx(), keyOf("s"), bad, main, backends.Cursor{MessageID: "m"})
				is(t, "RebaseCursor", err, backends.ErrInvalid)
			}
			_, err = h.Store.ListSessions(ctx(), backends.SessionQuery{App: "app", Offset: -1})
			is(t, "ListSessions from before the first", err, backends.ErrInvalid)
			_, err = h.Store.Sweep(ctx(), -1)
			is(t, "Sweep", err, backends.ErrInvalid)
			_, err = h.Store.Lease(ctx(), keyOf("s"), "owner", 0)
			is(t, "Lease", err, backends.ErrInvalid)
		}},
		{"identifiers of the full length work everywhere, spread over all bytes that UTF-8 has", func(t *testing.T, h Harness) {
			id := func(seed uint64) string { // incompressible, as a database might compress before it measures
				random := rand.New(rand.NewPCG(seed, seed))
				var b strings.Builder
				for b.Len() < backends.MaxIDBytes-3 {
					b.WriteRune(rune(0x80 + random.IntN(0xd000)))
				}
				b.WriteString(strings.Repeat("x", backends.MaxIDBytes-b.Len()))
				return b.String()
			}
			s := play(t, h.Store, backends.SessionKey{App: id(1), User: id(2), Session: id(3)})
			c := s.next(main, 1)
			c.Observation.Stream = backends.Stream{Branch: id(4), Scope: id(5)}
			c.Observation.ID, c.Messages[0].ID, c.To.MessageID = id(6), id(7), id(7)
			_, err := h.Store.Commit(ctx(), s.key, c)
			must(t, err)
			if held, err := h.Store.Lease(ctx(), s.key, id(8), time.Minute); err != nil || !held {
				t.Errorf("Lease = %v, %v", held, err)
			}
			got, err := h.Store.ListMessages(ctx(), s.key, backends.MessageQuery{ObservationID: id(6)})
			must(t, err)
			same(t, "messages", ids(got, messageID), []string{id(7)})
		}},
		{"a cancelled context stops every method before it writes", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			s.observe(main, 1)
			c := s.next(main, 1)
			cancelled, cancel := context.WithCancel(ctx())
			cancel()
			s.unchanged(func() {
				for _, call := range append(calls(c), appCalls()...) {
					is(t, call.method, call.do(cancelled, h.Store, s.key), context.Canceled)
				}
			})
		}},
		{"a closed store says so in every method, and closes again", func(t *testing.T, h Harness) {
			c := play(t, h.Store, keyOf("s")).next(main, 1)
			must(t, h.Store.Close())
			must(t, h.Store.Close())
			for _, call := range append(calls(c), appCalls()...) {
				is(t, call.method, call.do(ctx(), h.Store, keyOf("s")), backends.ErrClosed)
			}
		}},
		{"no error holds message content", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			s.observe(main, 1)
			c := s.next(main, 1)
			const secret = "hunter2"
			c.Observation.Text, c.Messages[0].Text, c.Messages[0].Content = secret, secret, []byte(secret)
			stale, broken, twice := c, c, c
			stale.From = backends.Cursor{}
			broken.Observation.ID, broken.Messages = "", append(c.Messages, c.Messages[0])
			twice.Observation.ID = "note1"
			for _, c := range []backends.Commit{stale, broken, twice} {
				if _, err := h.Store.Commit(ctx(), s.key, c); err == nil || strings.Contains(err.Error(), secret) {
					t.Errorf("error is %v", err)
				}
			}
		}},
	})
}
