package backendtest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
)

func runSearch(t *testing.T, open func(testing.TB) Harness) {
	runAll(t, open, []scenario{
		{"RET-8 messages are found by their words, the best first, with their text and place", func(t *testing.T, h Harness) {
			l, key := libraryOf(t, h), keyOf("s")
			say(t, l, key, "We talked about lunch.", "The deployment failed at night.", "Deployments of the billing service failed twice.", "Bye.")
			list, err := l.Search(ctx(), backends.SearchQuery{App: "app", User: "user", Text: "Why did the billing deployment fail?"})
			must(t, err)
			if len(list) < 2 || list[0].ID != "m2" || list[1].ID != "m1" || list[0].Score <= list[1].Score {
				t.Fatalf("found %+v", list)
			}
			m := list[0].Message
			if m == nil || m.Text != "Deployments of the billing service failed twice." || m.Key != key || m.Seq != 3 || list[0].Session != "s" {
				t.Errorf("the message is %+v", m)
			}
		}},
		{"RET-8 Korean, Japanese and Chinese queries find their messages", func(t *testing.T, h Harness) {
			l := libraryOf(t, h)
			filler := make([]string, 8)
			for i := range filler {
				filler[i] = "filler"
			}
			say(t, l, keyOf("s"), append([]string{"우리 강아지 이름은 뽀삐예요."}, filler...)...)
			say(t, l, keyOf("s"), append([]string{"昨日、京都で抹茶を飲みました。"}, filler...)...)
			say(t, l, keyOf("s"), append([]string{"我们下周去上海出差。"}, filler...)...)
			for text, want := range map[string]string{
				"강아지 이름이 뭐예요?": "m0", "京都では何を飲みましたか": "m9", "去上海的时间": "m18", "茶": "m9", "개": "",
			} {
				got := found(t, l, backends.SearchQuery{Text: text, Limit: 1})
				if want == "" && len(got) > 0 || want != "" && (len(got) == 0 || got[0] != "message/s/"+want) {
					t.Errorf("%q found %q, want %q", text, got, want)
				}
			}
		}},
		{"RET-8 search syntax in a query is text", func(t *testing.T, h Harness) {
			l := libraryOf(t, h)
			say(t, l, keyOf("s"), "alpha beta", "gamma")
			for _, text := range []string{
				`"alpha`, `alpha NEAR nothing`, `alpha*`, `title:alpha`, `alpha -- DROP`, `%alpha%`, `(alpha`, `alpha AND NOT alpha`,
				`{alpha}:^`, "alpha\x00", `'; SELECT alpha`, `alpha & | !`, "\xff alpha",
			} {
				if got := found(t, l, backends.SearchQuery{Text: text, Limit: 1}); len(got) != 1 || got[0] != "message/s/m0" {
					t.Errorf("%q found %q", text, got)
				}
			}
			for _, text := range []string{"", "the of and", "*", `""`, "%", "unknown"} {
				if got := found(t, l, backends.SearchQuery{Text: text}); len(got) != 0 {
					t.Errorf("%q found %q", text, got)
				}
			}
		}},
		{"RET-8 a neighbour of a match is found, a message of another session is no neighbour", func(t *testing.T, h Harness) {
			l := libraryOf(t, h)
			say(t, l, keyOf("s"), "Which city was it?", "Lisbon.")
			say(t, l, keyOf("other"), "Nothing here.")
			got := found(t, l, backends.SearchQuery{Text: "city"})
			same(t, "found", got, []string{"message/s/m0", "message/s/m1"})
		}},
		{"RET-8 filters by session and kind", func(t *testing.T, h Harness) {
			l := libraryOf(t, h)
			s, other := play(t, h.Store, keyOf("s")), play(t, h.Store, keyOf("other"))
			for _, p := range []*script{s, other} {
				p.observe(backends.Stream{}, 2)
				p.observe(backends.Stream{}, 1)
				p.condense(1, "note1")
			}
			save(t, l, backends.Entry{Kind: backends.KindKnowledge, Key: "k", Text: "A note, a message and a reflection."})
			text := "note message reflection"
			if got := found(t, l, backends.SearchQuery{Text: text}); len(got) != 12 {
				t.Errorf("found %q", got)
			}
			for kind, want := range map[backends.Kind]int{
				backends.KindMessage: 3, backends.KindObservation: 2, backends.KindReflection: 1, backends.KindKnowledge: 0,
			} {
				got := found(t, l, backends.SearchQuery{Text: text, Session: "s", Kinds: []backends.Kind{kind}})
				if len(got) != want {
					t.Errorf("of kind %s found %q", kind, got)
				}
				for _, g := range got {
					if !strings.HasPrefix(g, string(kind)+"/s/") {
						t.Errorf("of kind %s found %s", kind, g)
					}
				}
			}
			list, err := l.Search(ctx(), backends.SearchQuery{App: "app", User: "user", Text: text, Session: "s", Kinds: []backends.Kind{backends.KindObservation}})
			must(t, err)
			archived := 0
			for _, f := range list {
				if !f.Note.Active && f.Note.ParentID == "note3" {
					archived++
				}
			}
			if archived != 1 {
				t.Errorf("%d archived notes among %+v", archived, list)
			}
		}},
		{"RET-8 ranks are those of the reference backend", func(t *testing.T, h Harness) {
			l, reference := libraryOf(t, h), inmemory.New()
			fill(t, l, 4, 40)
			fill(t, reference, 4, 40)
			for i := range 12 {
				q := backends.SearchQuery{App: "app", User: "user", Text: fmt.Sprintf("word%d word%d word0", i, 2*i), Limit: 30}
				if i%2 == 0 {
					q.Session = fmt.Sprint("s", i%4)
				}
				got, err := l.Search(ctx(), q)
				must(t, err)
				want, err := reference.Search(ctx(), q)
				must(t, err)
				same(t, "ranks of "+q.Text, refsAndScores(got), refsAndScores(want))
			}
		}},
		{"RET-8 another tenant's rows change no rank and no score", func(t *testing.T, h Harness) {
			l := libraryOf(t, h)
			fill(t, l, 2, 20)
			q := backends.SearchQuery{App: "app", User: "user", Text: "word1 word2 word7", Limit: 30}
			before, err := l.Search(ctx(), q)
			must(t, err)
			for _, key := range []backends.SessionKey{{App: "app", User: "neighbour", Session: "s0"}, {App: "other", User: "user", Session: "s0"}} {
				for range 10 {
					say(t, l, key, strings.Repeat("word1 word2 ", 20), "word7", "word9")
				}
			}
			after, err := l.Search(ctx(), q)
			must(t, err)
			if len(before) == 0 {
				t.Fatal("nothing found")
			}
			same(t, "results", after, before)
		}},
		{"STO-3 what is deleted is not found any more", func(t *testing.T, h Harness) {
			l := libraryOf(t, h)
			s, other := play(t, h.Store, keyOf("s")), play(t, h.Store, keyOf("other"))
			for _, p := range []*script{s, other} {
				p.observe(backends.Stream{}, 2)
				p.observe(backends.Stream{}, 2)
				p.condense(1, "note1")
			}
			q := backends.SearchQuery{Text: "note message reflection", Session: "s"}
			count := func(want int) {
				t.Helper()
				if got := found(t, l, q); len(got) != want {
					t.Errorf("found %q, want %d", got, want)
				}
			}
			count(4 + 2 + 1)
			must(t, l.DeleteObservationsBySession(ctx(), s.key))
			count(4 + 1)
			must(t, l.DeleteReflectionsBySession(ctx(), s.key))
			count(4)
			must(t, l.DeleteSession(ctx(), s.key))
			count(0)
			q.Session = "other"
			count(7)
			must(t, l.DeleteUser(ctx(), "app", "user"))
			count(0)
			say(t, l, s.key, "A new message.")
			q.Session = "s"
			count(1)
			must(t, l.DeleteApp(ctx(), "app"))
			count(0)
		}},
		{"REF-4 a note that is condensed and discarded is not found any more", func(t *testing.T, h Harness) {
			l := libraryOf(t, h)
			s := play(t, h.Store, keyOf("s"))
			s.observe(backends.Stream{}, 1)
			s.observe(backends.Stream{}, 1)
			note := backends.Ref{Kind: backends.KindObservation, Session: "s", ID: "note1"}
			must(t, l.PutVectors(ctx(), "app", "user", []backends.Vector{{Ref: note, Model: "m", Values: []float32{1}}}))
			c := s.reflection(1, "note1", "note2")
			c.Discard = true
			_, err := l.Condense(ctx(), s.key, c)
			must(t, err)
			near, err := l.NearestVectors(ctx(), backends.VectorQuery{App: "app", User: "user", Model: "m", Values: []float32{1}})
			if err != nil || len(near) > 0 {
				t.Errorf("its vector is left: %v, %v", near, err)
			}
			got := found(t, l, backends.SearchQuery{Text: "note reflection", Kinds: []backends.Kind{backends.KindObservation, backends.KindReflection}})
			same(t, "found", got, []string{"reflection/s/note3"})
		}},
		{"STO-4 a write that fails leaves the index as it was", func(t *testing.T, h Harness) {
			l := libraryOf(t, h)
			s := play(t, h.Store, keyOf("s"))
			s.observe(backends.Stream{}, 1)
			c := s.next(backends.Stream{}, 1)
			c.From.MessageID = "moved"
			_, err := l.Commit(ctx(), s.key, c)
			is(t, "Commit from a cursor that moved", err, backends.ErrConflict)
			if got := found(t, l, backends.SearchQuery{Text: "message note"}); len(got) != 2 {
				t.Errorf("found %q", got)
			}
		}},
		{"MEM-1 messages that were appended are taken over by the note that covers them", func(t *testing.T, h Harness) {
			l := libraryOf(t, h)
			s := play(t, h.Store, keyOf("s"))
			c := s.next(backends.Stream{}, 2)
			n, err := l.AppendMessages(ctx(), s.key, backends.Stream{}, c.Messages[:1])
			if err != nil || n != 1 {
				t.Fatalf("AppendMessages = %d, %v", n, err)
			}
			_, err = l.Commit(ctx(), s.key, c)
			is(t, "Commit with the epoch from before", err, backends.ErrConflict)
			c.Epoch = s.load().Epoch
			_, err = l.Commit(ctx(), s.key, c)
			must(t, err)
			if n, err = l.AppendMessages(ctx(), s.key, backends.Stream{}, c.Messages); err != nil || n != 0 {
				t.Errorf("AppendMessages again = %d, %v", n, err)
			}
			list, err := l.ListMessages(ctx(), s.key, backends.MessageQuery{ObservationID: "note1"})
			must(t, err)
			same(t, "covered", ids(list, messageID), []string{c.Messages[0].ID, c.Messages[1].ID})
			if got := found(t, l, backends.SearchQuery{Text: "message", Kinds: []backends.Kind{backends.KindMessage}}); len(got) != 2 {
				t.Errorf("found %q", got)
			}
		}},
		{"RET-8 Lookup returns what exists, in the order asked", func(t *testing.T, h Harness) {
			l := libraryOf(t, h)
			play(t, h.Store, keyOf("s")).observe(backends.Stream{Branch: "b"}, 2)
			e := save(t, l, backends.Entry{Kind: backends.KindSkill, Text: "How to bake bread."})
			refs := []backends.Ref{
				{Kind: backends.KindSkill, ID: e.Key}, {Kind: backends.KindReflection, Session: "s", ID: "note1"},
				{Kind: backends.KindObservation, Session: "s", ID: "note1"}, {Kind: backends.KindMessage, Session: "other", ID: "b-m0"},
				{Kind: backends.KindMessage, Session: "s", ID: "b-m1"}, {Kind: backends.KindMessage, Session: "s", ID: "none"},
			}
			got, err := l.Lookup(ctx(), "app", "user", refs)
			must(t, err)
			if len(got) != 3 {
				t.Fatalf("found %+v", got)
			}
			same(t, "found", []backends.Ref{got[0].Ref, got[1].Ref, got[2].Ref}, []backends.Ref{refs[0], refs[2], refs[4]})
			same(t, "texts", []string{got[0].Text(), got[1].Text(), got[2].Text()}, []string{"How to bake bread.", "Note 1.", "Message 1."})
			same(t, "stream", got[2].Message.Stream, backends.Stream{Branch: "b"})
		}},
		{"SEC-4 a query past the limits is an error", func(t *testing.T, h Harness) {
			l := libraryOf(t, h)
			for what, q := range map[string]backends.SearchQuery{
				"no app": {User: "user", Text: "x"}, "no user": {App: "app", Text: "x"}, "a negative limit": {App: "a", User: "u", Limit: -1},
				"an unknown kind": {App: "a", User: "u", Kinds: []backends.Kind{"x"}}, "a bad session": {App: "a", User: "u", Session: "\x00"},
			} {
				_, err := l.Search(ctx(), q)
				is(t, what, err, backends.ErrInvalid)
			}
			_, err := l.Search(ctx(), backends.SearchQuery{App: "a", User: "u", Limit: backends.MaxListItems + 1})
			is(t, "a large limit", err, backends.ErrTooLarge)
			_, err = l.Lookup(ctx(), "app", "user", make([]backends.Ref, backends.MaxListItems+1))
			is(t, "many references", err, backends.ErrTooLarge)
			if got := found(t, l, backends.SearchQuery{Text: strings.Repeat("word ", 100_000)}); len(got) != 0 {
				t.Errorf("found %q", got)
			}
		}},
	})
}

// fill appends messages of random words to sessions.
func fill(t testing.TB, l library, sessions, messages int) {
	r := rand.New(rand.NewPCG(7, 7))
	for round := range 3 {
		for s := range sessions {
			texts := make([]string, messages/3+round)
			for i := range texts {
				for range 1 + r.IntN(8) {
					texts[i] += fmt.Sprintf(" word%d", int(r.ExpFloat64()*8))
				}
			}
			say(t, l, keyOf(fmt.Sprint("s", s)), texts...)
		}
	}
}

func refsAndScores(list []backends.Found) []string {
	return ids(list, func(f backends.Found) string { return fmt.Sprintf("%s %.6f", name(f.Ref), f.Score) })
}
