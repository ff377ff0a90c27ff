package inspect_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/html"
	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/sqlite"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/inspect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const app = "travel"

var start = time.Date(2026, 5, 9, 13, 40, 0, 0, time.UTC)

func openStore(t testing.TB) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "memory.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// words are the texts of a session that others write.
type words struct{ author, said, tool, note, writer, agent, section string }

func plainWords() words {
	return words{"user", "I am allergic to nuts", "get_weather", "- is allergic", "extractive", "planner", "## Conversation Memory\n\n> - is allergic"}
}

// turnsFunc is a function as [inspect.Turns].
type turnsFunc func(key backends.SessionKey) []middleware.TurnRecord

func (f turnsFunc) Turns(key backends.SessionKey) []middleware.TurnRecord { return f(key) }

func records(w words, n int) []middleware.TurnRecord {
	out := make([]middleware.TurnRecord, n)
	for i := range out {
		out[i] = middleware.TurnRecord{
			Time: start.Add(time.Duration(i) * time.Minute), Agent: w.agent, Instruction: 40, Knowledge: 60, Reflections: 300,
			Observations: 200, Raw: 100, Messages: 1234, History: 1000 * (i + 1), Section: w.section,
		}
	}
	return out
}

// fill writes observations of some messages each, and condenses them whenever five are active.
func fill(t testing.TB, store backends.Store, key backends.SessionKey, observations, each int, w words) {
	t.Helper()
	ctx := t.Context()
	var cursor backends.Cursor
	var epoch string
	var active []string
	generation1 := 0
	for i := range observations {
		c := backends.Commit{Epoch: epoch, From: cursor}
		for j := range each {
			n := i*each + j
			content := genai.NewContentFromText(fmt.Sprintf("%s (%d)", w.said, n), genai.RoleUser)
			if n%3 == 2 {
				content = genai.NewContentFromFunctionResponse(w.tool, map[string]any{w.tool: w.said, "n": n}, genai.RoleUser)
			}
			raw, err := json.Marshal(content)
			if err != nil {
				t.Fatal(err)
			}
			c.Messages = append(c.Messages, backends.Message{
				ID: fmt.Sprintf("m%d", n), Index: int64(n), Author: w.author, Role: "user", Time: start.Add(time.Duration(n) * time.Minute),
				Text: w.said, Content: raw, Tokens: 10,
			})
		}
		first, last := c.Messages[0], c.Messages[each-1]
		c.To = backends.Cursor{MessageID: last.ID, Time: last.Time, Index: last.Index}
		c.Observation.Note = backends.Note{
			ID: fmt.Sprintf("o%d", i), Text: fmt.Sprintf("%s (note %d)", w.note, i), Tokens: 20, Writer: w.writer, CreatedAt: last.Time,
			Range: backends.Range{Start: first.Index, End: last.Index, StartID: first.ID, EndID: last.ID, StartTime: first.Time, EndTime: last.Time},
		}
		if _, err := store.Commit(ctx, key, c); err != nil {
			t.Fatal(err)
		}
		cursor = c.To
		if epoch == "" {
			snap, err := store.Load(ctx, key, backends.Stamp{})
			if err != nil {
				t.Fatal(err)
			}
			epoch = snap.Epoch
		}
		if active = append(active, c.Observation.ID); len(active) == 5 {
			generation1++
			note := c.Observation.Note
			note.ID, note.Text = fmt.Sprintf("r%d", generation1), fmt.Sprintf("%s (reflection %d)", w.note, generation1)
			note.Range.Start, note.Range.StartTime = int64((i-4)*each), start.Add(time.Duration((i-4)*each)*time.Minute)
			_, err := store.Condense(ctx, key, backends.Condense{Epoch: epoch, Reflection: backends.Reflection{
				Note: note, Generation: 1, Sources: active,
			}})
			if err != nil {
				t.Fatal(err)
			}
			active = nil
		}
	}
}

func anybody(*http.Request, string, string) error { return nil }

// newPage makes a handler, with defaults for what a test does not care about.
func newPage(t testing.TB, cfg inspect.Config) http.Handler {
	t.Helper()
	if cfg.Apps == nil {
		cfg.Apps = []string{app}
	}
	if cfg.Authorize == nil {
		cfg.Authorize = anybody
	}
	h, err := inspect.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// get asks a handler for an address relative to its folder.
func get(t testing.TB, h http.Handler, address string) *httptest.ResponseRecorder {
	t.Helper()
	return request(t.Context(), h, http.MethodGet, address)
}

func request(ctx context.Context, h http.Handler, method, address string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, "/"+strings.TrimPrefix(address, "./"), nil))
	return w
}

// at is the address of a page about a session.
func at(page string, key backends.SessionKey, more ...string) string {
	q := url.Values{"app": {key.App}, "user": {key.User}, "session": {key.Session}}
	for i := 0; i < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	return page + "?" + q.Encode()
}

func ok(t testing.TB, h http.Handler, address string) string {
	t.Helper()
	w := get(t, h, address)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: status %d\n%s", address, w.Code, w.Body)
	}
	return w.Body.String()
}

// parsed is a document as tests look at it.
type parsed struct {
	all   []*html.Node // elements in document order
	texts string
}

func parse(t testing.TB, body string) parsed {
	t.Helper()
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	var p parsed
	var texts strings.Builder
	for n := range root.Descendants() {
		switch n.Type {
		case html.ElementNode:
			p.all = append(p.all, n)
		case html.TextNode:
			texts.WriteString(n.Data)
		}
	}
	p.texts = texts.String()
	return p
}

func (p parsed) tags(name string) []*html.Node {
	var out []*html.Node
	for _, n := range p.all {
		if n.Data == name {
			out = append(out, n)
		}
	}
	return out
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// links are the addresses that a page leads to.
func (p parsed) links() []string {
	var out []string
	for _, n := range p.all {
		for _, name := range []string{"href", "src", "action"} {
			if v := attr(n, name); v != "" && !strings.HasPrefix(v, "#") {
				out = append(out, v)
			}
		}
	}
	return out
}

func readAll(t testing.TB, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
