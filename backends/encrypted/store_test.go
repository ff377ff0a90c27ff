package encrypted_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/backendtest"
	"github.com/adkmemory/adkmemory/backends/encrypted"
	"github.com/adkmemory/adkmemory/backends/gormstore/gormtest"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/backends/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	ctx = context.Background()
	key = backends.SessionKey{App: "app", User: "user", Session: "session"}
)

func keyBytes(b byte) []byte { return bytes.Repeat([]byte{b}, encrypted.KeyBytes) }

func ring(t testing.TB, current string, ids ...string) *encrypted.Ring {
	t.Helper()
	keys := map[string][]byte{}
	for _, id := range append(ids, current) {
		keys[id] = keyBytes(id[0])
	}
	r, err := encrypted.NewRing(current, keys)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func wrap(t testing.TB, store backends.Store, keys encrypted.Keys) *encrypted.Store {
	t.Helper()
	s, err := encrypted.New(store, encrypted.Config{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openSQLite(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestSuite runs the conformance suite of all backends.
func TestSuite(t *testing.T) {
	t.Parallel()
	t.Run("SEC-3 every guarantee of the store beneath holds", func(t *testing.T) {
		t.Parallel()
		backendtest.Run(t, func(t testing.TB) backendtest.Harness {
			path := filepath.Join(t.TempDir(), "memory.db")
			another := func() backends.Store { return wrap(t, openSQLite(t, path), ring(t, "a")) }
			store := openSQLite(t, path)
			return backendtest.Harness{
				Store: wrap(t, store, ring(t, "a")), Another: another,
				Age:  func(d time.Duration) { gormtest.Age(t, store.DB(), d) },
				Rows: func(app, user string) map[string]int { return gormtest.Rows(t, store.DB(), app, user) },
			}
		})
	})
}

// commit stores one observation over two messages behind the newest.
func commit(t testing.TB, s backends.Store, key backends.SessionKey, n int, text string) {
	t.Helper()
	snap, err := s.Load(ctx, key, backends.Stamp{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC)
	c := backends.Commit{
		Epoch: snap.Epoch, From: snap.Cursors[backends.Stream{}],
		To:          backends.Cursor{MessageID: fmt.Sprintf("m%d-1", n), Time: now, Index: int64(2*n + 1), Fingerprint: "print of " + text[:min(len(text), 20)]},
		Observation: backends.Observation{Note: backends.Note{ID: fmt.Sprintf("o%d", n), Text: "note on " + text, Tokens: 5, Writer: "w"}},
	}
	for i := range 2 {
		content, _ := json.Marshal(map[string]any{"parts": []any{map[string]any{"text": text}}})
		c.Messages = append(c.Messages, backends.Message{ID: fmt.Sprintf("m%d-%d", n, i), Author: "user", Role: "user", Time: now, Text: text, Content: content})
	}
	if _, err := s.Commit(ctx, key, c); err != nil {
		t.Fatal(err)
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	inner := inmemory.New()
	old, rotated := wrap(t, inner, ring(t, "a")), wrap(t, inner, ring(t, "b", "a"))
	commit(t, old, key, 0, "zebra")
	commit(t, rotated, key, 1, "giraffe")
	t.Run("SEC-3 after a rotation new rows use the new key and old rows stay readable", func(t *testing.T) {
		t.Parallel()
		snap, err := rotated.Load(ctx, key, backends.Stamp{})
		if err != nil || len(snap.Observations) != 2 || snap.Observations[0].Text != "note on zebra" || snap.Observations[1].Text != "note on giraffe" ||
			snap.Cursors[backends.Stream{}].Fingerprint != "print of giraffe" {
			t.Errorf("%+v, %v", snap, err)
		}
		messages, err := rotated.ListMessages(ctx, key, backends.MessageQuery{})
		if err != nil || len(messages) != 4 || messages[0].Text != "zebra" || !strings.Contains(string(messages[3].Content), "giraffe") {
			t.Errorf("%+v, %v", messages, err)
		}
	})
	t.Run("SEC-3 a key that is gone is an error that says so", func(t *testing.T) {
		t.Parallel()
		for name, keys := range map[string]encrypted.Keys{"the old one": ring(t, "b"), "the new one": ring(t, "a")} {
			if _, err := wrap(t, inner, keys).Load(ctx, key, backends.Stamp{}); !errors.Is(err, encrypted.ErrUnknownKey) {
				t.Errorf("without %s: %v", name, err)
			}
		}
	})
	t.Run("SEC-3 another key of the same id opens nothing", func(t *testing.T) {
		t.Parallel()
		r, _ := encrypted.NewRing("b", map[string][]byte{"a": keyBytes('x'), "b": keyBytes('y')})
		if _, err := wrap(t, inner, r).Load(ctx, key, backends.Stamp{}); !errors.Is(err, encrypted.ErrOpen) {
			t.Error(err)
		}
	})
	t.Run("SEC-3 the store beneath holds nothing readable, and its snapshot is not touched", func(t *testing.T) {
		t.Parallel()
		snap, _ := inner.Load(ctx, key, backends.Stamp{})
		messages, _ := inner.ListMessages(ctx, key, backends.MessageQuery{})
		text := fmt.Sprintf("%+v %+v", snap, messages)
		for _, m := range messages {
			text += string(m.Content)
		}
		if strings.Contains(text, "zebra") || strings.Contains(text, "giraffe") {
			t.Error(text)
		}
	})
}

// moved hands out rows of one place as rows of another, as an attacker with access to the tables would.
type moved struct {
	backends.Store
	from backends.SessionKey
}

func (m moved) Load(ctx context.Context, _ backends.SessionKey, have backends.Stamp) (*backends.Snapshot, error) {
	return m.Store.Load(ctx, m.from, have)
}

func (m moved) ListMessages(ctx context.Context, _ backends.SessionKey, q backends.MessageQuery) ([]backends.StoredMessage, error) {
	messages, err := m.Store.ListMessages(ctx, m.from, q)
	return messages, err
}

func (m moved) ListNotes(ctx context.Context, key backends.SessionKey, q backends.NoteQuery) ([]backends.StoredNote, error) {
	notes, err := m.Store.ListNotes(ctx, m.from, q)
	if key == m.from && len(notes) == 2 {
		notes[0].Text, notes[1].Text = notes[1].Text, notes[0].Text
	}
	return notes, err
}

func TestBinding(t *testing.T) {
	t.Parallel()
	inner := inmemory.New()
	keys := ring(t, "a")
	commit(t, wrap(t, inner, keys), key, 0, "zebra")
	commit(t, wrap(t, inner, keys), key, 1, "giraffe")
	s := wrap(t, moved{inner, key}, keys)
	for name, other := range map[string]backends.SessionKey{
		"app": {App: "other", User: key.User, Session: key.Session}, "user": {App: key.App, User: "other", Session: key.Session},
		"session": {App: key.App, User: key.User, Session: "other"}, "shifted": {App: "appu", User: "ser", Session: "session"},
	} {
		t.Run("SEC-3 rows moved to another tenant do not open: "+name, func(t *testing.T) {
			t.Parallel()
			if _, err := s.Load(ctx, other, backends.Stamp{}); !errors.Is(err, encrypted.ErrOpen) {
				t.Error(err)
			}
			if _, err := s.ListMessages(ctx, other, backends.MessageQuery{}); !errors.Is(err, encrypted.ErrOpen) {
				t.Error(err)
			}
		})
	}
	t.Run("SEC-3 rows swapped within a session do not open", func(t *testing.T) {
		t.Parallel()
		if _, err := s.ListNotes(ctx, key, backends.NoteQuery{}); !errors.Is(err, encrypted.ErrOpen) {
			t.Error(err)
		}
	})
	t.Run("SEC-3 rows that were never encrypted are refused, unless they are to be accepted", func(t *testing.T) {
		t.Parallel()
		plain := inmemory.New()
		commit(t, plain, key, 0, "zebra")
		if _, err := wrap(t, plain, keys).Load(ctx, key, backends.Stamp{}); !errors.Is(err, encrypted.ErrOpen) {
			t.Error(err)
		}
		if _, err := wrap(t, plain, keys).ListMessages(ctx, key, backends.MessageQuery{}); !errors.Is(err, encrypted.ErrOpen) {
			t.Error(err)
		}
		both, _ := encrypted.New(plain, encrypted.Config{Keys: keys, AcceptPlaintext: true})
		commit(t, both, key, 1, "giraffe")
		snap, err := both.Load(ctx, key, backends.Stamp{})
		if err != nil || snap.Observations[0].Text != "note on zebra" || snap.Observations[1].Text != "note on giraffe" {
			t.Errorf("%+v, %v", snap, err)
		}
		messages, err := both.ListMessages(ctx, key, backends.MessageQuery{})
		if err != nil || messages[0].Text != "zebra" || messages[2].Text != "giraffe" {
			t.Errorf("%+v, %v", messages, err)
		}
	})
}

func TestSearch(t *testing.T) {
	t.Parallel()
	t.Run("SEC-3 search is off and says so, looking up by id works", func(t *testing.T) {
		t.Parallel()
		s := wrap(t, inmemory.New(), ring(t, "a"))
		commit(t, s, key, 0, "zebra")
		if _, err := s.Search(ctx, backends.SearchQuery{App: "app", User: "user", Text: "zebra"}); !errors.Is(err, encrypted.ErrSearchOff) {
			t.Error(err)
		}
		found, err := s.Lookup(ctx, "app", "user", []backends.Ref{{Kind: backends.KindMessage, Session: "session", ID: "m0-0"}, {Kind: backends.KindObservation, Session: "session", ID: "o0"}})
		if err != nil || len(found) != 2 || found[0].Text() != "zebra" || found[1].Text() != "note on zebra" {
			t.Errorf("%+v, %v", found, err)
		}
		for _, capability := range []bool{is[backends.KnowledgeStore](s), is[backends.VectorStore](s), is[backends.GraphStore](s)} {
			if capability {
				t.Error("a capability whose data would stand in plain text is offered")
			}
		}
	})
}

func is[T any](v any) bool { _, ok := v.(T); return ok }

func TestKeys(t *testing.T) {
	t.Parallel()
	t.Run("SEC-3 a ring from one line", func(t *testing.T) {
		t.Parallel()
		encode := base64.StdEncoding.EncodeToString
		r, err := encrypted.ParseRing("new:" + encode(keyBytes(1)) + ", old:" + encode(keyBytes(2)))
		if err != nil {
			t.Fatal(err)
		}
		if id, k, _ := r.Current(ctx); id != "new" || !bytes.Equal(k, keyBytes(1)) {
			t.Error(id)
		}
		if k, err := r.Key(ctx, "old"); err != nil || !bytes.Equal(k, keyBytes(2)) {
			t.Error(err)
		}
	})
	t.Run("SEC-3 a bad ring is an error without the key", func(t *testing.T) {
		t.Parallel()
		secret := base64.StdEncoding.EncodeToString([]byte("short"))
		for _, line := range []string{"", "a", "a:!", "a:" + secret, ":" + secret, "a:" + secret + ",a:" + secret, strings.Repeat("x", 65) + ":" + secret} {
			if _, err := encrypted.ParseRing(line); err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("%q: %v", line, err)
			}
		}
		if _, err := encrypted.NewRing("b", map[string][]byte{"a": keyBytes(1)}); !errors.Is(err, encrypted.ErrUnknownKey) {
			t.Error(err)
		}
		if _, err := encrypted.New(inmemory.New(), encrypted.Config{}); err == nil {
			t.Error("a store without keys was made")
		}
	})
}

var word = regexp.MustCompile(`[A-Za-z]{6,}`)

// TestFile looks at the bytes of a database after a conversation.
func TestFile(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		encrypt bool
	}{{"SEC-3 no word of the conversation is in the database file or its log", true}, {"SEC-3 without encryption it is", false}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var s backends.Store = openSQLite(t, filepath.Join(dir, "memory.db"))
			if tc.encrypt {
				s = wrap(t, s, ring(t, "a"))
			}
			const said = "Please reschedule Zoltan's appointment with Doctor Xanthippe to Wednesday, because the quarantine certificate lapsesnow"
			for n := range 30 {
				commit(t, s, key, n, said)
			}
			snap, err := s.Load(ctx, key, backends.Stamp{})
			if err != nil {
				t.Fatal(err)
			}
			sources := []string{}
			for _, o := range snap.Observations {
				sources = append(sources, o.ID)
			}
			r := backends.Reflection{Note: backends.Note{ID: "r", Text: "condensed: " + said, Tokens: 9, Writer: "w"}, Generation: 1, Sources: sources}
			if _, err := s.Condense(ctx, key, backends.Condense{Epoch: snap.Epoch, Reflection: r}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.(backends.Appender).AppendMessages(ctx, key, backends.Stream{}, []backends.Message{{ID: "later", Text: said, Content: []byte(said)}}); err != nil {
				t.Fatal(err)
			}
			files, _ := filepath.Glob(filepath.Join(dir, "*"))
			var bytes int
			found := map[string]bool{}
			for _, f := range files {
				raw, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				bytes += len(raw)
				lower := strings.ToLower(string(raw))
				for _, w := range word.FindAllString(said, -1) {
					if strings.Contains(lower, strings.ToLower(w)) {
						found[w] = true
					}
				}
			}
			if len(files) < 2 || bytes < 50_000 {
				t.Fatalf("%v hold %d bytes: nothing was written", files, bytes)
			}
			if tc.encrypt != (len(found) == 0) {
				t.Errorf("found %v", found)
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	s := wrap(b, inmemory.New(), ring(b, "a"))
	for n := range 25 {
		commit(b, s, key, n, strings.Repeat("a note of some length ", 50))
	}
	for b.Loop() {
		if _, err := s.Load(ctx, key, backends.Stamp{}); err != nil {
			b.Fatal(err)
		}
	}
}
