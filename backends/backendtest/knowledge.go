package backendtest

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

func runKnowledge(t *testing.T, open func(testing.TB) Harness) {
	entry := func(key, text string) backends.Entry {
		return backends.Entry{
			Kind: backends.KindLearning, Key: key, Title: "Title of " + key, Text: text, Category: "network",
			Tags: []string{"Go", "ci", "go"}, Source: "https://example.org/" + key,
		}
	}
	keys := func(list []backends.Entry) []string { return ids(list, func(e backends.Entry) string { return e.Key }) }
	runAll(t, open, []scenario{
		{"RET-1 an entry is stored as the first version and found by its words, tags and category", func(t *testing.T, h Harness) {
			l := libraryOf(t, h)
			got := save(t, l, entry("k", "Restart the resolver when lookups time out."))
			if got.Version != 1 || got.Confidence != 0.5 || got.CreatedAt.IsZero() || !got.CreatedAt.Equal(got.UpdatedAt) {
				t.Errorf("stored %+v", got)
			}
			same(t, "tags", got.Tags, []string{"ci", "go"})
			again, err := l.GetEntry(ctx(), "app", "user", backends.KindLearning, "k")
			must(t, err)
			same(t, "entry", again, got)
			for _, text := range []string{"resolver timeouts lookups", "title", "network", "ci"} {
				list, err := l.Search(ctx(), backends.SearchQuery{App: "app", User: "user", Text: text, Kinds: []backends.Kind{backends.KindLearning}})
				must(t, err)
				if len(list) != 1 || list[0].Entry == nil {
					t.Fatalf("%q found %+v", text, list)
				}
				same(t, "found entry", *list[0].Entry, got)
			}
			if got := found(t, l, backends.SearchQuery{Text: "resolver", Kinds: []backends.Kind{backends.KindSkill}}); len(got) != 0 {
				t.Errorf("as a skill found %q", got)
			}
		}},
		{"RET-1 saving under a key makes the next version, saving the same makes none", func(t *testing.T, h Harness) {
			l := libraryOf(t, h)
			first := save(t, l, entry("k", "Old words."))
			same(t, "unchanged entry", save(t, l, entry("k", "Old words.")), first)
			second := save(t, l, entry("k", "New words."))
			if second.Version != 2 || !second.CreatedAt.Equal(first.CreatedAt) {
				t.Errorf("stored %+v", second)
			}
			list, err := l.ListVersions(ctx(), "app", "user", backends.KindLearning, "k")
			must(t, err)
			same(t, "versions", ids(list, func(e backends.Entry) string { return fmt.Sprint(e.Version, e.Text) }), []string{"2New words.", "1Old words."})
			for text, want := range map[string]int{"old": 0, "new": 1} {
				if got := found(t, l, backends.SearchQuery{Text: text, Kinds: backends.EntryKinds()}); len(got) != want {
					t.Errorf("%q found %q", text, got)
				}
			}
			stale := entry("k", "Other words.")
			stale.Version = 1
			_, err = l.SaveEntry(ctx(), "app", "user", stale)
			is(t, "SaveEntry over another version", err, backends.ErrConflict)
			for i := range backends.MaxEntryVersions + 3 {
				save(t, l, entry("k", fmt.Sprint("Text ", i)))
			}
			list, err = l.ListVersions(ctx(), "app", "user", backends.KindLearning, "k")
			if err != nil || len(list) != backends.MaxEntryVersions || list[0].Version != backends.MaxEntryVersions+5 {
				t.Errorf("%d versions are kept, %v", len(list), err)
			}
		}},
		{"RET-1 without a key equal texts are one entry", func(t *testing.T, h Harness) {
			l := libraryOf(t, h)
			a := save(t, l, backends.Entry{Kind: backends.KindKnowledge, Text: "Ada prefers  tea."})
			b := save(t, l, backends.Entry{Kind: backends.KindKnowledge, Text: "ada PREFERS tea."})
			c := save(t, l, backends.Entry{Kind: backends.KindKnowledge, Text: "Ada prefers coffee."})
			if a.Key != b.Key || a.Key == c.Key {
				t.Errorf("keys %q %q %q", a.Key, b.Key, c.Key)
			}
		}},
		{"RET-1 success raises a learning's confidence, failure lowers it", func(t *testing.T, h Harness) {
			l := libraryOf(t, h)
			save(t, l, entry("k", "Words."))
			outcome := func(success bool, want float64) {
				t.Helper()
				e, err := l.RecordOutcome(ctx(), "app", "user", backends.KindLearning, "k", success)
				must(t, err)
				if math.Abs(e.Confidence-want) > 1e-9 {
					t.Errorf("confidence %v, want %v", e.Confidence, want)
				}
			}
			outcome(true, 2.0/3)
			outcome(true, 3.0/4)
			outcome(false, 3.0/5)
			e, err := l.GetEntry(ctx(), "app", "user", backends.KindLearning, "k")
			if err != nil || e.Successes != 2 || e.Failures != 1 || math.Abs(e.Confidence-0.6) > 1e-9 || e.Version != 1 {
				t.Errorf("stored %+v, %v", e, err)
			}
			retagged := entry("k", "Words.")
			retagged.Tags = nil
			if e = save(t, l, retagged); e.Version != 2 || e.Successes != 2 || math.Abs(e.Confidence-0.6) > 1e-9 {
				t.Errorf("the same text in another category is %+v", e)
			}
			if e = save(t, l, entry("k", "Others.")); e.Successes != 0 || e.Confidence != 0.5 {
				t.Errorf("another text is %+v", e)
			}
			_, err = l.RecordOutcome(ctx(), "app", "user", backends.KindLearning, "none", true)
			is(t, "RecordOutcome of nothing", err, backends.ErrNotFound)
		}},
		{"RET-1 entries are listed by kind, category and tags, the last updated first, in pages", func(t *testing.T, h Harness) {
			l := libraryOf(t, h)
			for i := range 5 {
				e := entry(fmt.Sprint("k", i), fmt.Sprint("Text ", i))
				if i%2 == 0 {
					e.Tags, e.Category = append(e.Tags, `"quoted"`, "100%"), "disk"
				}
				save(t, l, e)
			}
			save(t, l, backends.Entry{Kind: backends.KindSkill, Key: "skill", Text: "Text"})
			if h.Age != nil {
				h.Age(0)
			}
			list := func(q backends.EntryQuery) []string {
				t.Helper()
				q.App, q.User = "app", "user"
				got, err := l.ListEntries(ctx(), q)
				must(t, err)
				for i := 1; i < len(got); i++ {
					if got[i].UpdatedAt.After(got[i-1].UpdatedAt) {
						t.Errorf("entry %d was updated after the one before it", i)
					}
				}
				return keys(got)
			}
			for _, c := range []struct {
				q    backends.EntryQuery
				want int
			}{
				{backends.EntryQuery{}, 6}, {backends.EntryQuery{Kind: backends.KindLearning}, 5}, {backends.EntryQuery{Category: "disk"}, 3},
				{backends.EntryQuery{Tags: []string{"GO"}}, 5}, {backends.EntryQuery{Tags: []string{"go", `"quoted"`}}, 3},
				{backends.EntryQuery{Tags: []string{"100%"}}, 3}, {backends.EntryQuery{Tags: []string{"g"}}, 0},
				{backends.EntryQuery{Limit: 2}, 2}, {backends.EntryQuery{Offset: 4, Limit: 4}, 2},
			} {
				if got := list(c.q); len(got) != c.want {
					t.Errorf("%+v lists %q, want %d", c.q, got, c.want)
				}
			}
			for q, want := range map[string]backends.SearchQuery{
				"3": {Text: "text", Category: "disk", Kinds: backends.EntryKinds()}, "5": {Text: "text", Tags: []string{"go"}, Kinds: backends.EntryKinds()},
				"6": {Text: "text", Kinds: backends.EntryKinds()}, "1": {Text: "text", Tags: []string{"go"}, Kinds: backends.EntryKinds(), Limit: 1},
			} {
				if got := found(t, l, want); fmt.Sprint(len(got)) != q {
					t.Errorf("%+v found %q, want %s", want, got, q)
				}
			}
		}},
		{"STO-3 a deleted entry leaves nothing, and the user's deletion takes all entries along", func(t *testing.T, h Harness) {
			l := libraryOf(t, h)
			e := save(t, l, entry("k", "Some words."))
			save(t, l, entry("k", "Some other words."))
			ref := backends.Ref{Kind: e.Kind, ID: e.Key}
			must(t, l.PutVectors(ctx(), "app", "user", []backends.Vector{{Ref: ref, Model: "m", Values: []float32{1}}}))
			must(t, l.PutTriples(ctx(), "app", "user", []backends.Triple{{Subject: "a", Predicate: "b", Object: "c", Source: ref}}))
			must(t, l.DeleteEntry(ctx(), "app", "user", e.Kind, e.Key))
			must(t, l.DeleteEntry(ctx(), "app", "user", e.Kind, e.Key))
			empty := func() {
				t.Helper()
				_, err := l.GetEntry(ctx(), "app", "user", e.Kind, e.Key)
				is(t, "GetEntry", err, backends.ErrNotFound)
				if got := found(t, l, backends.SearchQuery{Text: "words", Kinds: backends.EntryKinds()}); len(got) != 0 {
					t.Errorf("found %q", got)
				}
				if h.Rows != nil {
					for table, n := range h.Rows("app", "user") {
						if n > 0 {
							t.Errorf("%d rows are left in %s", n, table)
						}
					}
				}
			}
			empty()
			save(t, l, entry("k", "Some words."))
			must(t, l.DeleteSession(ctx(), keyOf("s")))
			if got := found(t, l, backends.SearchQuery{Text: "words", Kinds: backends.EntryKinds()}); len(got) != 1 {
				t.Errorf("after the deletion of a session found %q", got)
			}
			must(t, l.DeleteUser(ctx(), "app", "user"))
			empty()
			save(t, l, entry("k", "Some words."))
			must(t, l.DeleteApp(ctx(), "app"))
			empty()
		}},
		{"STO-4 of concurrent saves each makes a version of its own", func(t *testing.T, h Harness) {
			l := libraryOf(t, h)
			const n = 6
			errs := make(chan error, n)
			for i := range n {
				go func() {
					_, err := l.SaveEntry(ctx(), "app", "user", entry("k", fmt.Sprint("Text ", i)))
					errs <- err
				}()
			}
			for range n {
				must(t, <-errs)
			}
			list, err := l.ListVersions(ctx(), "app", "user", backends.KindLearning, "k")
			if err != nil || len(list) != n || list[0].Version != n {
				t.Errorf("versions %+v, %v", list, err)
			}
			if got := found(t, l, backends.SearchQuery{Text: "text", Kinds: backends.EntryKinds()}); len(got) != 1 {
				t.Errorf("found %q", got)
			}
		}},
		{"SEC-4 an entry past the limits is an error", func(t *testing.T, h Harness) {
			l := libraryOf(t, h)
			for what, e := range map[string]backends.Entry{
				"no kind": {Text: "x"}, "a kind that is no entry's": {Kind: backends.KindMessage, Text: "x"}, "no text": {Kind: backends.KindSkill},
				"a confidence past 1": {Kind: backends.KindSkill, Text: "x", Confidence: 1.1}, "a bad key": {Kind: backends.KindSkill, Text: "x", Key: "\xff"},
				"an empty tag": {Kind: backends.KindSkill, Text: "x", Tags: []string{" "}},
			} {
				_, err := l.SaveEntry(ctx(), "app", "user", e)
				is(t, what, err, backends.ErrInvalid)
			}
			_, err := l.SaveEntry(ctx(), "app", "user", backends.Entry{Kind: backends.KindSkill, Text: string(make([]byte, backends.MaxTextBytes+1))})
			is(t, "a long text", err, backends.ErrTooLarge)
			_, err = l.SaveEntry(ctx(), "app", "user", backends.Entry{Kind: backends.KindSkill, Text: "x", Tags: make([]string, backends.MaxEntryTags+1)})
			is(t, "many tags", err, backends.ErrTooLarge)
			got := save(t, l, backends.Entry{Kind: backends.KindSkill, Key: "k", Text: "a\x00b\xff", Title: "t\x00"})
			if got.Text != "a\uFFFDb\uFFFD" || got.Title != "t\uFFFD" || time.Since(got.CreatedAt) > time.Hour {
				t.Errorf("stored %+v", got)
			}
		}},
	})
}
