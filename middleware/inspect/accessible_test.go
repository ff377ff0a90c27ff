package inspect_test

import (
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/adkmemory/adkmemory/middleware/inspect"
)

func TestAccessible(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	fill(t, store, holiday, 60, 5, plainWords())
	h := newPage(t, inspect.Config{Store: store, Turns: turnsOf(plainWords(), 9)})
	for _, address := range []string{"", "?q=zebra", at("session", holiday), at("note", holiday, "id", "o0"), at("note", holiday, "id", "r1"),
		at("messages", holiday), "nowhere"} {
		p := parse(t, get(t, h, address).Body.String())
		t.Run("OPS-5 landmarks, headings and names for a screen reader: "+address, func(t *testing.T) {
			t.Parallel()
			for name, n := range map[string]int{"h1": 1, "main": 1, "header": 1, "footer": 1} {
				if got := len(p.tags(name)); got != n {
					t.Errorf("%d %s elements", got, name)
				}
			}
			if attr(p.tags("html")[0], "lang") == "" {
				t.Error("no language")
			}
			if first := p.tags("a")[0]; attr(first, "href") != "#main" || attr(p.tags("main")[0], "id") != "main" {
				t.Error("no skip link before everything else")
			}
			level := 0
			ids, labelled := map[string]bool{}, map[string]bool{}
			for _, n := range p.all {
				if id := attr(n, "id"); id != "" {
					if ids[id] {
						t.Errorf("id %q twice", id)
					}
					ids[id] = true
				}
				labelled[attr(n, "for")] = true
			}
			for _, n := range p.all {
				if len(n.Data) == 2 && n.Data[0] == 'h' && n.Data[1] >= '1' && n.Data[1] <= '6' {
					if now := int(n.Data[1] - '0'); now > level+1 {
						t.Errorf("heading %q jumps from level %d to %d", textOf(n), level, now)
					} else {
						level = now
					}
				}
				if ref := attr(n, "aria-labelledby"); ref != "" && !ids[ref] {
					t.Errorf("nothing has the id %q", ref)
				}
				named := attr(n, "aria-label") != "" || attr(n, "aria-labelledby") != "" || attr(n, "aria-hidden") == "true"
				switch {
				case n.Data == "svg" && !named, n.Data == "nav" && !named, n.Data == "section" && !named,
					attr(n, "tabindex") == "0" && (!named || attr(n, "role") != "region"),
					n.Data == "a" && strings.TrimSpace(textOf(n)) == "" && !named,
					n.Data == "input" && attr(n, "type") != "hidden" && !labelled[attr(n, "id")],
					n.Data == "table" && p.next(n).Data != "caption",
					n.Data == "th" && attr(n, "scope") == "",
					n.Data == "img" && !hasAttr(n, "alt"):
					t.Errorf("<%s %v> has no name", n.Data, n.Attr)
				}
			}
		})
		t.Run("OPS-5 no script, no style and no handler inside the page: "+address, func(t *testing.T) {
			t.Parallel()
			for _, n := range p.all {
				if n.Data == "script" || n.Data == "style" || n.Data == "iframe" || n.Data == "base" {
					t.Errorf("a %s element", n.Data)
				}
				for _, a := range n.Attr {
					if a.Key == "style" || strings.HasPrefix(a.Key, "on") || strings.Contains(a.Val, "://") {
						t.Errorf("<%s> has %s=%q", n.Data, a.Key, a.Val)
					}
				}
			}
		})
	}
}

// next is the element after n in document order.
func (p parsed) next(n *html.Node) *html.Node { return p.all[slices.Index(p.all, n)+1] }

func hasAttr(n *html.Node, name string) bool {
	for _, a := range n.Attr {
		if a.Key == name {
			return true
		}
	}
	return false
}

func TestContrast(t *testing.T) {
	t.Parallel()
	css, err := os.ReadFile("assets/style.css")
	if err != nil {
		t.Fatal(err)
	}
	light, dark, _ := strings.Cut(string(css), "prefers-color-scheme: dark")
	dark, _, _ = strings.Cut(dark, "* {")
	for scheme, text := range map[string]string{"light": light, "dark": dark} {
		colours := map[string]float64{}
		for _, m := range regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{6})`).FindAllStringSubmatch(text, -1) {
			colours[m[1]] = luminance(t, m[2])
		}
		for _, tc := range []struct {
			ground string
			least  float64
			front  []string
		}{
			{"paper", 4.5, []string{"ink", "soft", "accent"}},
			{"panel", 4.5, []string{"ink", "soft", "accent"}},
			{"code", 4.5, []string{"ink", "soft"}},
			{"accent", 4.5, []string{"panel"}},
			{"accent-soft", 4.5, []string{"accent"}},
			{"warn-soft", 4.5, []string{"warn"}},
			{"panel", 3, []string{"instruction", "knowledge", "reflection", "deep", "observation", "raw", "message", "history"}},
			{"paper", 3, []string{"observation", "reflection", "deep", "message", "history"}},
		} {
			for _, name := range tc.front {
				t.Run("OPS-5 contrast of "+name+" on "+tc.ground+", "+scheme, func(t *testing.T) {
					t.Parallel()
					a, b := colours[name], colours[tc.ground]
					if a == 0 || b == 0 {
						t.Fatal("no such colour")
					}
					if ratio := (math.Max(a, b) + 0.05) / (math.Min(a, b) + 0.05); ratio < tc.least {
						t.Errorf("%.2f, want %.1f", ratio, tc.least)
					}
				})
			}
		}
	}
}

// luminance is WCAG's relative luminance.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	rgb, err := strconv.ParseUint(hex, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		c := float64(rgb>>(16-8*i)&0xff) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
