package inspect

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of what one page shows, in bytes.
const (
	maxText    = 32 << 10  // of one note or one part of a message
	maxPreview = 1 << 10   // of one part of a message on the time line
	maxSection = 256 << 10 // of the prompt section
)

// text is a text as far as it is shown.
type text struct {
	Shown string
	Rest  int // bytes that are left out
}

// cut bounds a text at a character.
func cut(s string, limit int) text {
	if len(s) <= limit {
		return text{Shown: s}
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return text{Shown: s[:limit], Rest: len(s) - limit}
}

// visible makes characters visible that would change how the text around them reads: controls, and those that turn the
// direction of writing. Everything else is escaped by the templates.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < ' ':
			return 0x2400 + r // the control pictures
		case r == 0x7f:
			return '\u2421'
		case r >= 0x80 && r <= 0x9f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r >= 0xe0000 && r <= 0xe007f:
			return '\u25a1' // a white square
		}
		return r
	}, s)
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + many
}

// date writes a time to the minute, in UTC.
func date(t time.Time) string {
	if t.IsZero() {
		return "no time"
	}
	return t.UTC().Format("2 Jan 2006, 15:04")
}

func percent(part, whole int) string {
	if whole <= 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(whole))
}
