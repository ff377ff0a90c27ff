package inspect_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/inspect"
)

// attacks are the texts that must not get out of a prompt's quotes, and more that must not get out of a page's.
func attacks(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "prompt", "testdata", "attacks.txt"))
	if err != nil {
		t.Fatal(err)
	}
	all := []string{
		"<script>alert(1)</script>", "</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<svg/onload=alert(1)>",
		"\" onmouseover=\"alert(1)", "' onfocus='alert(1)' autofocus='", "\"><h1>forged</h1>", "</title><script>alert(1)</script>",
		"</pre></details></main><main>forged", "</textarea><form action=//evil.example>", "javascript:alert(1)", "//evil.example/x",
		"data:text/html,<script>alert(1)</script>", "{{.Data}}", "<!--", "-->", "]]>", "<![CDATA[", "<base href=//evil.example>",
		"<meta http-equiv=refresh content=0;url=//evil.example>", "<a href=//evil.example>click</a>", "&lt;script&gt;", "&#60;script&#62;",
		"\x00<script>", "\xff<script>", "<scr\x00ipt>", "`${alert(1)}`", "<link rel=stylesheet href=//evil.example>", "</svg><script>1</script>",
		"</bdi></a></li></ol><script>1</script>", "\u202e\u2066<b>", "?app=x&user=y#z", "../../etc/passwd", "<style>*{display:none}</style>",
	}
	for line := range strings.Lines(string(raw)) {
		s, err := strconv.Unquote(strings.TrimSpace(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, s)
	}
	return all
}

// skeleton is a page without its words: elements, the names of their attributes, and the folders that links lead to.
func skeleton(t *testing.T, body string) string {
	t.Helper()
	var b strings.Builder
	for _, n := range parse(t, body).all {
		fmt.Fprintf(&b, "%s:%s", n.Namespace, n.Data)
		for _, a := range n.Attr {
			fmt.Fprintf(&b, " %s", a.Key)
			if a.Key == "href" || a.Key == "src" || a.Key == "action" {
				folder, _, _ := strings.Cut(a.Val, "?")
				fmt.Fprintf(&b, "=%s", folder)
			}
			if a.Key == "class" {
				fmt.Fprintf(&b, "=%s", a.Val)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestUntrusted(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	build := func(n int, s string) (inspect.Config, []string) {
		// An identifier that no store takes is replaced, as it would be upstream.
		id := strings.ReplaceAll(strings.ToValidUTF8(s[:min(len(s), 150)], "?"), "\x00", "?")
		if id == "" {
			id = "?"
		}
		key := backends.SessionKey{App: fmt.Sprintf("%s %d", id, n), User: id, Session: id}
		w := words{author: id, said: s, tool: s, note: s, writer: id, agent: s, section: s}
		fill(t, store, key, 6, 3, w)
		cfg := inspect.Config{Store: store, Apps: []string{key.App}, Turns: turnsOf(w, 3)}
		q := backends.SessionKey{App: key.App}
		return cfg, []string{at("", key, "session", ""), at("", q, "user", "", "session", "", "q", id), at("session", key),
			at("session", key, "order", s), at("note", key, "id", "o0"), at("note", key, "id", "r1"), at("messages", key)}
	}
	plain, pages := build(0, "harmless")
	h := newPage(t, plain)
	want := make([]string, len(pages))
	for i, address := range pages {
		want[i] = skeleton(t, ok(t, h, address))
	}
	for n, s := range attacks(t) {
		s = s[:min(len(s), 500)] // a text that is cut has a notice of its own
		cfg, pages := build(n+1, s)
		h := newPage(t, cfg)
		t.Run(fmt.Sprintf("OPS-5 nothing that was said becomes part of the page: %.60q", s), func(t *testing.T) {
			t.Parallel()
			for i, address := range pages {
				body := ok(t, h, address)
				if got := skeleton(t, body); got != want[i] {
					t.Errorf("%s: the page's elements are\n%s\nwant\n%s", address, got, want[i])
				}
				if strings.ContainsAny(parse(t, body).texts, "\x00\u202e\u2066") {
					t.Errorf("%s: characters that change the text around them", address)
				}
			}
		})
	}
	t.Run("OPS-5 what was said is shown as it was said", func(t *testing.T) {
		t.Parallel()
		const said = `<script>alert("1")</script> &amp; ' 世界 {{.}}`
		w := plainWords()
		w.said, w.note = said, said
		key := backends.SessionKey{App: app, User: "u", Session: "shown"}
		fill(t, store, key, 1, 2, w)
		texts := parse(t, ok(t, newPage(t, inspect.Config{Store: store}), at("note", key, "id", "o0"))).texts
		if !strings.Contains(texts, said+" (0)") || !strings.Contains(texts, said+" (note 0)") {
			t.Errorf("the page:\n%s", texts)
		}
	})
}
