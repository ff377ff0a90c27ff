package backendtest

import (
	"testing"

	"github.com/adkmemory/adkmemory/backends"
)

func runArchive(t *testing.T, open func(testing.TB) Harness) {
	main := backends.Stream{}
	runAll(t, open, []scenario{
		{"REF-4 messages are listed in order, by page and by observation", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			s.observe(main, 3)
			s.observe(main, 2)
			all := s.state().Messages
			same(t, "all", ids(all, messageID), []string{"-m0", "-m1", "-m2", "-m3", "-m4"})
			list := func(q backends.MessageQuery) []string {
				t.Helper()
				got, err := s.store.ListMessages(ctx(), s.key, q)
				must(t, err)
				return ids(got, messageID)
			}
			same(t, "page", list(backends.MessageQuery{Limit: 2, AfterSeq: all[1].Seq}), []string{"-m2", "-m3"})
			same(t, "one observation", list(backends.MessageQuery{ObservationID: "note2"}), []string{"-m3", "-m4"})
			same(t, "its page", list(backends.MessageQuery{ObservationID: "note1", AfterSeq: all[0].Seq, Limit: 1}), []string{"-m1"})
			same(t, "unknown observation", list(backends.MessageQuery{ObservationID: "note9"}), []string{})
		}},
		{"REF-4 notes are listed in order, by page and by id", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			for range 4 {
				s.observe(main, 1)
			}
			s.condense(1, "note2", "note3")
			list := func(q backends.NoteQuery) []string {
				t.Helper()
				got, err := s.store.ListNotes(ctx(), s.key, q)
				must(t, err)
				return ids(got, noteID)
			}
			same(t, "all", list(backends.NoteQuery{}), []string{"note1", "note2", "note3", "note4", "note5"})
			same(t, "page", list(backends.NoteQuery{Limit: 2, AfterSeq: 2}), []string{"note3", "note4"})
			same(t, "by id", list(backends.NoteQuery{IDs: []string{"note5", "note2", "note9"}}), []string{"note2", "note5"})
			same(t, "none", list(backends.NoteQuery{IDs: []string{}}), []string{})
		}},
		{"REF-4 a page has the default length unless the caller names one", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			s.observe(main, backends.DefaultListItems+1)
			got, err := s.store.ListMessages(ctx(), s.key, backends.MessageQuery{})
			must(t, err)
			if len(got) != backends.DefaultListItems {
				t.Errorf("%d messages on a page", len(got))
			}
		}},
		{"MEM-1 messages are appended once each, and taken over by the commit that covers them", func(t *testing.T, h Harness) {
			appender, ok := h.Store.(backends.Appender)
			if !ok {
				t.Skip("the store takes no messages without a note")
			}
			s := play(t, h.Store, keyOf("s"))
			add := func(want int, indices ...int64) {
				t.Helper()
				var messages []backends.Message
				for _, i := range indices {
					messages = append(messages, message(main, i))
				}
				n, err := appender.AppendMessages(ctx(), s.key, main, messages)
				if err != nil || n != want {
					t.Fatalf("AppendMessages(%v) = %d, %v", indices, n, err)
				}
			}
			add(2, 0, 1)
			add(1, 1, 2)
			add(0)
			if got := s.load(); len(got.Cursors) != 0 || got.Epoch == "" {
				t.Errorf("snapshot is %+v", got)
			}
			s.observe(main, 2)
			add(1, 0, 5)
			s.observe(main, 2)
			got := s.state().Messages
			same(t, "messages", ids(got, messageID), []string{"-m0", "-m1", "-m2", "-m5", "-m3"})
			same(t, "observations", ids(got, func(m backends.StoredMessage) string { return m.ObservationID }),
				[]string{"note1", "note1", "note2", "", "note2"})
		}},
	})
}
