package inspect_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/adkmemory/adkmemory/middleware/inspect"
)

// focused tells what has the focus, and whether it can be seen to have it.
const focused = `(() => {
	const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
	const inner = e.querySelector && e.querySelector("rect");
	const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 ||
		!!inner && parseFloat(getComputedStyle(inner).strokeWidth) >= 3;
	return {
		tag: e.tagName.toLowerCase(), text: (e.getAttribute("aria-label") || e.textContent || e.name || "").trim(),
		seen: seen && box.width > 0 && box.right > 0,
	};
})()`

func TestBrowser(t *testing.T) {
	t.Parallel()
	c := startChromium(t)
	store := openStore(t)
	w := plainWords()
	w.said = strings.Repeat("averyveryverylongwordwithoutanybreak", 20) + ` <img src=x onerror=console.error(1)><script>console.error(2)</script>`
	fill(t, store, holiday, 12, 4, w)
	page := newPage(t, inspect.Config{Store: store, Turns: turnsOf(plainWords(), 30)})
	mux := http.NewServeMux()
	mux.Handle("/memory/", http.StripPrefix("/memory", page))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	base := server.URL + "/memory/"
	pages := []string{base, base + "?q=zebra", base + at("session", holiday), base + at("note", holiday, "id", "o0"),
		base + at("note", holiday, "id", "r1"), base + at("messages", holiday)}

	t.Run("OPS-5 pages are drawn in light and dark, and fit a narrow screen", func(t *testing.T) {
		for _, address := range pages {
			for _, screen := range []struct {
				width, height int
				scheme        string
			}{{1280, 900, "light"}, {1280, 900, "dark"}, {320, 640, "light"}} {
				c.screen(screen.width, screen.height, screen.scheme)
				c.open(address)
				var width int
				if c.eval("document.documentElement.scrollWidth", &width); width > screen.width {
					t.Errorf("%s: %d wide on a screen of %d", address, width, screen.width)
				}
				colours := map[[3]uint32]int{}
				brightness := 0.0
				picture := c.screenshot()
				const step = 5
				for y := 0; y < screen.height; y += step {
					for x := 0; x < screen.width; x += step {
						r, g, b, _ := picture.At(x, y).RGBA()
						colours[[3]uint32{r >> 8, g >> 8, b >> 8}]++
						brightness += float64(r+g+b) / 3 / 0xffff
					}
				}
				brightness /= float64(screen.width * screen.height / step / step)
				if len(colours) < 10 || (screen.scheme == "dark") != (brightness < 0.4) {
					t.Errorf("%s, %s: %d colours, brightness %.2f", address, screen.scheme, len(colours), brightness)
				}
			}
		}
	})
	t.Run("OPS-5 the keyboard reaches everything, and it can be seen where it is", func(t *testing.T) {
		c.screen(1280, 900, "light")
		for _, address := range pages {
			c.open(address)
			var want int
			c.eval(`[...document.querySelectorAll("a[href], button, input:not([type=hidden]), summary, [tabindex='0']")]
				.filter(e => e.checkVisibility({visibilityProperty: true})).length`, &want)
			var got []string
			for range want {
				c.press("Tab", "Tab", 9, "")
				var f struct {
					Tag, Text string
					Seen      bool
				}
				c.eval(focused, &f)
				if !f.Seen {
					t.Errorf("%s: the focus on %s %.40q cannot be seen", address, f.Tag, f.Text)
				}
				got = append(got, f.Tag+" "+f.Text)
			}
			if got[0] != "a Skip to the content" || slices.Contains(got[1:], got[0]) || slices.Contains(got, "body ") {
				t.Errorf("%s: %d stops: %.60q", address, want, got)
			}
		}
	})
	t.Run("OPS-5 messages open by keyboard", func(t *testing.T) {
		c.open(base + at("session", holiday))
		var opened bool
		c.eval(`(() => { document.querySelector(".card summary").focus(); return true })()`, &opened)
		c.press("Enter", "Enter", 13, "\r")
		if c.eval(`document.querySelector(".card details").open && document.querySelector(".card .msg").checkVisibility()`, &opened); !opened {
			t.Error("still closed")
		}
	})
	t.Run("OPS-5 the browser has nothing to complain about and asks nobody else", func(t *testing.T) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.Heard) > 0 {
			t.Errorf("the browser says %q", c.Heard)
		}
		if len(c.Asked) < len(pages) {
			t.Errorf("only %d requests", len(c.Asked))
		}
		for _, address := range c.Asked {
			if !strings.HasPrefix(address, base) {
				t.Errorf("asked for %s", address)
			}
		}
	})
}
