package backendtest

import (
	"strings"
	"testing"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

func runCommit(t *testing.T, open func(testing.TB) Harness) {
	main := backends.Stream{}
	runAll(t, open, []scenario{
		{"OBS-1 the note comes back with its range and tokens, and its messages beside it", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			c := s.next(main, 3)
			got, err := s.store.Commit(ctx(), s.key, c)
			must(t, err)
			want := c.Clean().Observation
			want.Seq = 1
			same(t, "observation", got, want)
			var messages []backends.StoredMessage
			for i, m := range c.Clean().Messages {
				messages = append(messages, backends.StoredMessage{
					Message: m, Key: s.key, Seq: int64(i + 1), Stream: main, ObservationID: got.ID,
				})
			}
			same(t, "messages", s.state().Messages, messages)
		}},
		{"STO-4 a commit fails and writes nothing unless it starts from the cursor", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			s.observe(main, 2)
			current := s.cursors[main]
			for name, from := range map[string]backends.Cursor{
				"zero":  {},
				"id":    {MessageID: "other", Time: current.Time, Index: current.Index},
				"time":  {MessageID: current.MessageID, Time: current.Time.Add(time.Microsecond), Index: current.Index},
				"index": {MessageID: current.MessageID, Time: current.Time, Index: current.Index + 1},
			} {
				c := s.next(main, 1)
				c.From = from
				s.unchanged(func() {
					_, err := s.store.Commit(ctx(), s.key, c)
					is(t, "Commit from another "+name, err, backends.ErrConflict)
				})
			}
			c := s.next(main, 1)
			c.From.Fingerprint = "does not matter"
			_, err := s.store.Commit(ctx(), s.key, c)
			must(t, err)
		}},
		{"STO-4 a commit fails and writes nothing unless it names the epoch", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			c := s.next(main, 1)
			c.Epoch = "other"
			s.unchanged(func() {
				_, err := s.store.Commit(ctx(), s.key, c)
				is(t, "Commit with an epoch of a session without state", err, backends.ErrConflict)
			})
			s.observe(main, 1)
			for _, epoch := range []string{"", "other"} {
				c := s.next(main, 1)
				c.Epoch = epoch
				s.unchanged(func() {
					_, err := s.store.Commit(ctx(), s.key, c)
					is(t, "Commit with epoch "+epoch, err, backends.ErrConflict)
				})
			}
		}},
		{"STO-4 a stream holds a message once, a session a note", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			s.observe(main, 2)
			twice := s.next(main, 2)
			twice.Messages[1].ID = message(main, 0).ID
			s.unchanged(func() {
				_, err := s.store.Commit(ctx(), s.key, twice)
				is(t, "Commit of a message that is stored", err, backends.ErrConflict)
			})
			note := s.next(main, 1)
			note.Observation.ID = "note1"
			s.unchanged(func() {
				_, err := s.store.Commit(ctx(), s.key, note)
				is(t, "Commit of a note that is stored", err, backends.ErrConflict)
			})
			other := s.next(backends.Stream{Branch: "b"}, 1)
			other.Messages[0].ID = message(main, 0).ID
			_, err := s.store.Commit(ctx(), s.key, other)
			must(t, err)
		}},
		{"every stream has a cursor of its own", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			streams := []backends.Stream{main, {Branch: "b"}, {Scope: "b"}, {Branch: "b", Scope: "b"}}
			for range 2 {
				for _, stream := range streams {
					s.observe(stream, 2)
				}
			}
			snap := s.load()
			for _, stream := range streams {
				if got := snap.Cursors[stream].Index; got != 3 {
					t.Errorf("cursor of %v is at %d", stream, got)
				}
			}
			same(t, "streams", ids(snap.Observations, func(o backends.Observation) string { return o.Stream.Branch + "/" + o.Stream.Scope }),
				[]string{"/", "b/", "/b", "b/b", "/", "b/", "/b", "b/b"})
		}},
		{"a commit without messages keeps none", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			c := s.next(main, 2)
			c.Messages = nil
			_, err := s.store.Commit(ctx(), s.key, c)
			must(t, err)
			if got := s.state(); len(got.Messages) != 0 || len(got.Snapshot.Observations) != 1 {
				t.Errorf("state is %+v", got)
			}
		}},
		{"times are kept to the microsecond, whatever century they are from", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			for _, at := range []time.Time{{}, time.Unix(-1, 999_999_999), time.Unix(0, 0), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
				c := s.next(main, 1)
				c.To.Time, c.Messages[0].Time, c.Observation.CreatedAt = at, at, at
				_, err := s.store.Commit(ctx(), s.key, c)
				must(t, err)
				s.cursors[main] = c.To
				got := s.state()
				last := len(got.Messages) - 1
				for what, stored := range map[string]time.Time{
					"cursor": got.Snapshot.Cursors[main].Time, "message": got.Messages[last].Time,
					"note": got.Snapshot.Observations[last].CreatedAt,
				} {
					if !stored.Equal(backends.CleanTime(at)) || at.IsZero() != stored.IsZero() {
						t.Errorf("time of the %s is %v, not %v", what, stored, at)
					}
				}
			}
		}},
		{"text is kept exactly, but for what is no UTF-8 or NUL; content is kept byte for byte", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			c := s.next(main, 1)
			odd := "Ж 漢字 🙂 'quoted' \"double\" \\ % _ ? $1 :name @name -- /* \u202e \ufeff \r\n\t"
			c.Observation.Text, c.Messages[0].Text = odd, odd+"\x00\xff"
			c.Messages[0].Content = []byte{0, 1, 0xff, '\'', '"'}
			_, err := s.store.Commit(ctx(), s.key, c)
			must(t, err)
			got := s.state()
			same(t, "note", got.Snapshot.Observations[0].Text, odd)
			same(t, "message", got.Messages[0].Text, odd+"\ufffd\ufffd")
			same(t, "content", got.Messages[0].Content, c.Messages[0].Content)
		}},
		{"STO-4 the store shares nothing with a commit", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			c := s.next(main, 1)
			_, err := s.store.Commit(ctx(), s.key, c)
			must(t, err)
			s.unchanged(func() {
				c.Messages[0].Content[0] = 'X'
				c.Messages[0].Text = "changed"
			})
		}},
		{"a large commit is one write", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			c := s.next(main, 1500)
			for i := range 30 {
				c.Messages[i].Content = []byte(strings.Repeat("x", 1<<20))
			}
			_, err := s.store.Commit(ctx(), s.key, c)
			must(t, err)
			page, err := s.store.ListMessages(ctx(), s.key, backends.MessageQuery{Limit: 1000})
			must(t, err)
			rest, err := s.store.ListMessages(ctx(), s.key, backends.MessageQuery{Limit: 1000, AfterSeq: page[999].Seq})
			must(t, err)
			for i, m := range append(page, rest...) {
				if m.Index != int64(i) || m.Seq != int64(i+1) || len(m.Content) != len(c.Messages[i].Content) {
					t.Fatalf("message %d has index %d, seq %d, %d bytes", i, m.Index, m.Seq, len(m.Content))
				}
			}
			if n := len(page) + len(rest); n != 1500 {
				t.Errorf("%d messages are stored", n)
			}
		}},
		{"CMP-2 RebaseCursor sets the index to 0 and keeps the message", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			s.observe(main, 5)
			s.observe(backends.Stream{Branch: "b"}, 2)
			from := s.cursors[main]
			must(t, s.store.RebaseCursor(ctx(), s.key, s.load().Epoch, main, from))
			want := from
			want.Index, want.Time = 0, backends.CleanTime(from.Time)
			snap := s.load()
			same(t, "cursor", snap.Cursors[main], want)
			if got := snap.Cursors[backends.Stream{Branch: "b"}].Index; got != 1 {
				t.Errorf("another stream's cursor is at %d", got)
			}
			s.unchanged(func() {
				is(t, "the same again", s.store.RebaseCursor(ctx(), s.key, snap.Epoch, main, from), backends.ErrConflict)
				is(t, "other epoch", s.store.RebaseCursor(ctx(), s.key, "other", main, want), backends.ErrConflict)
				is(t, "other stream", s.store.RebaseCursor(ctx(), s.key, snap.Epoch, backends.Stream{Branch: "c"}, want), backends.ErrConflict)
				is(t, "no cursor", s.store.RebaseCursor(ctx(), s.key, snap.Epoch, main, backends.Cursor{}), backends.ErrInvalid)
			})
			c := s.next(main, 1)
			c.From, c.To.Index, c.Messages[0].Index = want, 1, 1
			_, err := s.store.Commit(ctx(), s.key, c)
			must(t, err)
		}},
	})
}
