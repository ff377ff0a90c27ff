package inspect_test

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/inspect"
)

var holiday = backends.SessionKey{App: app, User: "ada", Session: "holiday"}

func turnsOf(w words, n int) inspect.Turns {
	return turnsFunc(func(backends.SessionKey) []middleware.TurnRecord { return records(w, n) })
}

func TestPages(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	fill(t, store, holiday, 7, 6, plainWords())
	h := newPage(t, inspect.Config{Store: store, Turns: turnsOf(plainWords(), 10), Memory: middleware.Config{MemoryTokenBudget: 777}})
	session := ok(t, h, at("session", holiday))

	t.Run("OPS-5 the list tells what each session holds", func(t *testing.T) {
		t.Parallel()
		p := parse(t, ok(t, h, ""))
		if row := textOf(p.tags("tbody")[0]); row != "holidayada2142"+row[len("holidayada2142"):] {
			t.Errorf("row %q, want 2 observations, 1 reflection and 42 messages", row)
		}
		if !slices.Contains(p.links(), at("session", holiday)) {
			t.Errorf("no link to the session in %q", p.links())
		}
	})
	t.Run("OPS-5 the search finds parts of names of users and sessions", func(t *testing.T) {
		t.Parallel()
		for search, found := range map[string]bool{"OLI": true, "ad": true, "zebra": false, "%": false} {
			if body := ok(t, h, "?q="+url.QueryEscape(search)); strings.Contains(body, "holiday") != found {
				t.Errorf("search for %q: found = %t", search, !found)
			}
		}
	})
	t.Run("OPS-5 the time line has messages, the observations over them and the reflections over those", func(t *testing.T) {
		t.Parallel()
		p := parse(t, session)
		var names []string
		for _, n := range p.tags("h3") {
			names = append(names, textOf(n))
		}
		want := []string{"Against the budgets", "Observation 8", "Observation 7", "Reflection 6, generation 1", "Observation 5",
			"Observation 4", "Observation 3", "Observation 2", "Observation 1"}
		if !slices.Equal(names, want) {
			t.Errorf("headings %q, want %q", names, want)
		}
		for _, text := range []string{"- is allergic (note 6)", "- is allergic (reflection 1)", "I am allergic to nuts (0)", "messages 36–41"} {
			if !strings.Contains(p.texts, text) {
				t.Errorf("%q is not shown", text)
			}
		}
		var oldest []string
		for _, n := range parse(t, ok(t, h, at("session", holiday, "order", "oldest"))).tags("h3") {
			oldest = append(oldest, textOf(n))
		}
		slices.Reverse(oldest[1:])
		if !slices.Equal(oldest, want) {
			t.Errorf("oldest first: %q", oldest)
		}
	})
	t.Run("OPS-5 an observation leads to all its raw messages, call results included", func(t *testing.T) {
		t.Parallel()
		p := parse(t, ok(t, h, at("note", holiday, "id", "o1")))
		for i := range 12 {
			text := fmt.Sprintf("I am allergic to nuts (%d)", i)
			if i%3 == 2 {
				text = fmt.Sprintf("\"n\": %d", i)
			}
			if strings.Contains(p.texts, text) != (i >= 6) {
				t.Errorf("message %d shown: %t", i, i < 6)
			}
		}
		if !strings.Contains(p.texts, "get_weather answers") || !strings.Contains(p.texts, "60 tokens of messages became a note of 20.") {
			t.Errorf("the page:\n%s", p.texts)
		}
		if !slices.Contains(p.links(), at("note", holiday, "id", "r1")) {
			t.Error("no link to the reflection that condensed it")
		}
	})
	t.Run("OPS-5 a reflection leads to its sources", func(t *testing.T) {
		t.Parallel()
		links := parse(t, ok(t, h, at("note", holiday, "id", "r1"))).links()
		for i := range 7 {
			if want := at("note", holiday, "id", fmt.Sprintf("o%d", i)); slices.Contains(links, want) != (i < 5) {
				t.Errorf("link to o%d: %t", i, i >= 5)
			}
		}
	})
	t.Run("OPS-5 the picture of the layers has a link for every note", func(t *testing.T) {
		t.Parallel()
		p := parse(t, session)
		var drawn []string
		for _, n := range p.tags("a") {
			if n.Namespace == "svg" {
				drawn = append(drawn, attr(n, "aria-label"))
			}
		}
		slices.Sort(drawn)
		want := []string{
			"Observation 1, over 6 messages, condensed", "Observation 2, over 6 messages, condensed", "Observation 3, over 6 messages, condensed",
			"Observation 4, over 6 messages, condensed", "Observation 5, over 6 messages, condensed", "Observation 7, over 6 messages",
			"Observation 8, over 6 messages", "Reflection 6, generation 1, over 30 messages",
		}
		if !slices.Equal(drawn, want) {
			t.Errorf("drawn: %q", drawn)
		}
	})
	t.Run("OPS-5 the budget is drawn to scale, section by section", func(t *testing.T) {
		t.Parallel()
		p := parse(t, session)
		widths := map[string]float64{}
		for _, n := range p.tags("rect") {
			if attr(n, "height") == "10" && widths[attr(n, "class")] == 0 {
				w, err := strconv.ParseFloat(attr(n, "width"), 64)
				if err != nil {
					t.Fatal(err)
				}
				widths[attr(n, "class")] = w
			}
		}
		// The 1,934 tokens sent are 1,000 units, and so are the 10,040 of history and instruction; a part gives 2 for the gap.
		for class, tokens := range map[string]float64{"instruction": 40, "knowledge": 60, "reflection": 300, "observation": 200, "raw": 100, "message": 1234} {
			if want := tokens*1000/1934 - 2; math.Abs(widths[class]-want) > 0.1 {
				t.Errorf("%s is %g wide, want %g", class, widths[class], want)
			}
		}
		if want := 1934 * 1000.0 / 10040; math.Abs(widths["sent"]-want) > 0.1 {
			t.Errorf("what was sent is %g wide, want %g of the history's 1,000", widths["sent"], want)
		}
		for _, text := range []string{"1,934", "10,040", "19 %", "500 of 777", "1,334 of 8,000"} {
			if !strings.Contains(p.texts, text) {
				t.Errorf("%q is not shown", text)
			}
		}
	})
	t.Run("OPS-5 tokens sent against history are drawn call by call, and stand in a table", func(t *testing.T) {
		t.Parallel()
		p := parse(t, session)
		lines := p.tags("polyline")
		if len(lines) != 2 {
			t.Fatalf("%d lines", len(lines))
		}
		history, sent := strings.Fields(attr(lines[0], "points")), strings.Fields(attr(lines[1], "points"))
		// The upper end of the axis is 12,000 tokens, at 0 of 300 units.
		if len(history) != 10 || history[9] != "1000.0,49.0" || history[0] != "0.0,274.0" || len(sent) != 10 || sent[0] != "0.0,251.7" {
			t.Errorf("history %v, sent %v", history, sent)
		}
		if rows := len(p.tags("tr")); rows != 1+6+1+10 {
			t.Errorf("%d table rows", rows)
		}
	})
	t.Run("OPS-5 the last prompt section is shown byte for byte", func(t *testing.T) {
		t.Parallel()
		w := plainWords()
		w.section = "\n\n## Conversation Memory\n\n> <b>&amp;&lt;\t\"quoted\" 'x' {{.}} \\n \u00e9\u4e16\U0001F600\n\n\n  trailing  \n"
		p := parse(t, ok(t, newPage(t, inspect.Config{Store: store, Turns: turnsOf(w, 2)}), at("session", holiday)))
		for _, n := range p.tags("pre") {
			if attr(n, "aria-label") == "The last prompt section" && textOf(n) == w.section {
				return
			}
		}
		t.Error("the section is not shown as it is")
	})
	t.Run("OPS-5 a session without recorded turns still shows its notes, and says how to record", func(t *testing.T) {
		t.Parallel()
		for _, turns := range []inspect.Turns{nil, turnsOf(plainWords(), 0)} {
			body := ok(t, newPage(t, inspect.Config{Store: store, Turns: turns}), at("session", holiday))
			if !strings.Contains(body, "RecordTurns") || !strings.Contains(body, "Observation 8") {
				t.Errorf("the page:\n%s", body)
			}
		}
	})
	t.Run("OPS-5 a session that only has recorded turns, or one of them, is shown", func(t *testing.T) {
		t.Parallel()
		fresh := backends.SessionKey{App: app, User: "new", Session: "first-words"}
		h := newPage(t, inspect.Config{Store: store, Turns: turnsOf(plainWords(), 1)})
		if p := parse(t, ok(t, h, at("session", fresh))); len(p.tags("polyline")) != 0 || !strings.Contains(p.texts, "one call") {
			t.Errorf("the page:\n%s", p.texts)
		}
	})
}

func TestMount(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	odd := backends.SessionKey{App: "tra/vel #1", User: "ä & ö?x=1", Session: "../..//%2e%2e;\"<'>"}
	fill(t, store, odd, 30, 2, plainWords())
	page := newPage(t, inspect.Config{Store: store, Apps: []string{odd.App}, Turns: turnsOf(plainWords(), 5)})
	mux := http.NewServeMux()
	mux.Handle("/deep/debug/memory/", http.StripPrefix("/deep/debug/memory", page))
	mux.Handle("/bare", http.StripPrefix("/bare", page))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	client := server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	ask := func(address string) (int, http.Header, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		return res.StatusCode, res.Header, readAll(t, res.Body)
	}
	t.Run("OPS-5 under a prefix every link stays below it and leads somewhere", func(t *testing.T) {
		t.Parallel()
		prefix := server.URL + "/deep/debug/memory/"
		seen := map[string]bool{}
		kinds := map[string]int{}
		for queue := []string{prefix}; len(queue) > 0; queue = queue[1:] {
			here := queue[0]
			if seen[here] {
				continue
			}
			seen[here] = true
			status, header, body := ask(here)
			if status != http.StatusOK {
				t.Errorf("%s: status %d", here, status)
			}
			base, err := url.Parse(here)
			if err != nil {
				t.Fatal(err)
			}
			kinds[strings.TrimPrefix(base.Path, "/deep/debug/memory/")]++
			if !strings.HasPrefix(header.Get("Content-Type"), "text/html") {
				continue
			}
			for _, link := range parse(t, body).links() {
				to, err := base.Parse(link)
				if err != nil {
					t.Errorf("%s: link %q: %v", here, link, err)
					continue
				}
				if to.Fragment = ""; !strings.HasPrefix(to.String(), prefix) {
					t.Errorf("%s: link %q leads to %s", here, link, to)
					continue
				}
				queue = append(queue, to.String())
			}
		}
		// 30 observations and 6 reflections; the list and the session in their variants.
		if kinds["note"] != 36 || kinds["session"] < 4 || kinds["messages"] < 2 || kinds["assets/style.css"] != 1 || kinds["assets/icon.svg"] != 1 {
			t.Errorf("visited %v", kinds)
		}
	})
	t.Run("OPS-5 without its last slash the prefix leads to the page", func(t *testing.T) {
		t.Parallel()
		status, header, _ := ask(server.URL + "/bare?app=x")
		if got := header.Get("Location"); status != http.StatusTemporaryRedirect || got != "./bare/?app=x" {
			t.Errorf("status %d, location %q", status, got)
		}
	})
}

var noteName = regexp.MustCompile(`<h3><a href="[^"]*">(?:Observation|Reflection) (\d+)`)

func TestBounds(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	fill(t, store, holiday, 300, 2, plainWords()) // 360 notes
	h := newPage(t, inspect.Config{Store: store, Turns: turnsOf(plainWords(), 1000)})
	for _, order := range []string{"newest", "oldest"} {
		t.Run("OPS-5 paging the time line meets every note once, "+order+" first", func(t *testing.T) {
			t.Parallel()
			var seen []int
			next := at("session", holiday, "order", order)
			for range 15 {
				body := ok(t, h, next)
				names := noteName.FindAllStringSubmatch(body, -1)
				if len(names) > 25 || len(body) > 300_000 {
					t.Fatalf("%d notes on a page of %d bytes", len(names), len(body))
				}
				for _, n := range names {
					seq, _ := strconv.Atoi(n[1])
					seen = append(seen, seq)
				}
				links := parse(t, body)
				next = ""
				for _, a := range links.tags("a") {
					if attr(a, "rel") == "next" {
						next, _, _ = strings.Cut(attr(a, "href"), "#")
					}
				}
				if next == "" {
					break
				}
			}
			if order == "newest" {
				slices.Reverse(seen)
			}
			for i, seq := range seen {
				if seq != i+1 {
					t.Fatalf("note %d at place %d", seq, i+1)
				}
			}
			if len(seen) != 360 {
				t.Errorf("%d notes were met", len(seen))
			}
		})
	}
	t.Run("OPS-5 the chart and its table are bounded", func(t *testing.T) {
		t.Parallel()
		p := parse(t, ok(t, h, at("session", holiday)))
		if n := len(strings.Fields(attr(p.tags("polyline")[0], "points"))); n != 200 {
			t.Errorf("%d points", n)
		}
	})
	t.Run("OPS-5 paging messages meets each once", func(t *testing.T) {
		t.Parallel()
		number := regexp.MustCompile(`<span>message (\d+)</span>`)
		next, count := at("messages", holiday), 0
		for next != "" && count <= 600 {
			body := ok(t, h, next)
			for _, n := range number.FindAllStringSubmatch(body, -1) {
				if n[1] != strconv.Itoa(count) {
					t.Fatalf("message %s at place %d", n[1], count)
				}
				count++
			}
			next = ""
			for _, a := range parse(t, body).tags("a") {
				if attr(a, "rel") == "next" {
					next = attr(a, "href")
				}
			}
		}
		if count != 600 {
			t.Errorf("%d messages were met", count)
		}
	})
	t.Run("OPS-5 paging the list meets each session once", func(t *testing.T) {
		t.Parallel()
		store := openStore(t)
		for i := range 120 {
			fill(t, store, backends.SessionKey{App: app, User: "u", Session: fmt.Sprintf("s-%03d", i)}, 1, 1, plainWords())
		}
		h := newPage(t, inspect.Config{Store: store})
		seen := map[string]int{}
		for next := "?app=" + app; next != ""; {
			p := parse(t, ok(t, h, next))
			next = ""
			for _, a := range p.tags("a") {
				if name := textOf(a); strings.HasPrefix(name, "s-") {
					seen[name]++
				}
				if attr(a, "rel") == "next" {
					next = attr(a, "href")
				}
			}
		}
		for name, n := range seen {
			if n != 1 {
				t.Errorf("%s was met %d times", name, n)
			}
		}
		if len(seen) != 120 {
			t.Errorf("%d sessions were met", len(seen))
		}
	})
	t.Run("OPS-5 long texts are cut, and the page says by how much", func(t *testing.T) {
		t.Parallel()
		store := openStore(t)
		w := plainWords()
		w.said, w.note, w.section = strings.Repeat("世", 300_000), strings.Repeat("b", 900_000), strings.Repeat("c", 5_000_000)
		fill(t, store, holiday, 2, 2, w)
		h := newPage(t, inspect.Config{Store: store, Turns: turnsOf(w, 2)})
		for _, address := range []string{at("session", holiday), at("note", holiday, "id", "o0"), at("messages", holiday)} {
			body := ok(t, h, address)
			if len(body) > 600_000 || !strings.Contains(body, "more bytes not shown") || strings.Contains(body, "\uFFFD") {
				t.Errorf("%s: %d bytes", address, len(body))
			}
		}
	})
}
