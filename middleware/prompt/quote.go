package prompt

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const quotePrefix = "> "

// Quote fences untrusted text: every line of the result begins with "> ", so that none can be a heading, a code fence,
// a role line or the header of another section. Everything that some reader takes for a line break (LF, CR, CRLF, VT,
// FF, NEL, U+2028, U+2029) becomes one, line breaks at the end are dropped, bytes that are not UTF-8 become U+FFFD, and
// characters without a width (controls but the tab, bidirectional overrides, zero-width and tag characters, variation
// selectors beyond the two common ones) are removed. Text that is empty after that gives "".
func Quote(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/32 + 2*len(quotePrefix))
	lineOpen := false
	breaks := 0
	put := func(run string) {
		if run == "" {
			return
		}
		for ; breaks > 0; breaks-- {
			if !lineOpen {
				b.WriteString(quotePrefix)
			}
			b.WriteByte('\n')
			lineOpen = false
		}
		if !lineOpen {
			b.WriteString(quotePrefix)
			lineOpen = true
		}
		b.WriteString(run)
	}
	start := 0
	for i := 0; i < len(text); {
		if c := text[i]; c >= ' ' && c < 0x7f || c == '\t' {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		kind := classify(r, n)
		if kind == runeKept {
			i += n
			continue
		}
		put(text[start:i])
		switch kind {
		case runeBreak:
			if r == '\r' && i+1 < len(text) && text[i+1] == '\n' {
				n = 2
			}
			if b.Len() > 0 || lineOpen {
				breaks++
			}
		case runeInvalid:
			put(string(utf8.RuneError))
		}
		i += n
		start = i
	}
	put(text[start:])
	return b.String()
}

// Inline makes a value such as an author's name or an id fit for a header of ours: one line, without the brackets,
// colons and marks that could forge the rest of the header, at most maxBytes long (cut at a character, with an
// ellipsis; no limit when maxBytes <= 0). What [Quote] removes is removed here too; white space collapses.
func Inline(text string, maxBytes int) string {
	var b strings.Builder
	space := false
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		kind := classify(r, n)
		i += n
		switch {
		case kind == runeRemoved:
			continue
		case kind == runeBreak || unicode.IsSpace(r):
			space = b.Len() > 0
			continue
		case kind == runeInvalid:
			r = utf8.RuneError
		case forges(r):
			r = '_'
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
		if maxBytes > 0 && b.Len() > maxBytes {
			return clip(b.String(), maxBytes)
		}
	}
	return b.String()
}

// Fence returns text byte for byte in a fenced block, whose fence is longer than any run of backticks in the text: no
// line of it can close the block.
func Fence(text string) string {
	longest, run := 0, 0
	for i := range len(text) {
		if text[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", max(3, longest+1))
	return fence + "\n" + text + "\n" + fence
}

type runeKind uint8

const (
	runeKept runeKind = iota
	runeBreak
	runeRemoved
	runeInvalid
)

func classify(r rune, size int) runeKind {
	switch {
	case r == utf8.RuneError && size <= 1:
		return runeInvalid
	case r >= ' ' && r < 0x7f, r == '\t':
		return runeKept
	case r == '\n', r == '\r', r == '\v', r == '\f', r == 0x85, r == 0x2028, r == 0x2029:
		return runeBreak
	case r < 0xa0: // what is left of C0 and C1, and DEL
		return runeRemoved
	case r < 0x300:
		if r == 0xad { // soft hyphen
			return runeRemoved
		}
		return runeKept
	case r == 0xfe0e, r == 0xfe0f: // text or emoji presentation
		return runeKept
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r): // format characters that are seen
		return runeKept
	case unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return runeRemoved
	}
	return runeKept
}

// forges reports the characters that headers of ours are made of, in any width, and those that markdown gives a
// meaning.
func forges(r rune) bool {
	switch r {
	case ':', '：', '﹕', '︰', '︓', '꞉', '∶', 'ː', '<', '>', '＜', '＞', '#', '＃', '`', '|', '｜', '*', '"', '\\':
		return true
	}
	return unicode.In(r, unicode.Ps, unicode.Pe)
}

// clip cuts text to at most limit bytes, at a character, with an ellipsis where there is room for one.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const ellipsis = "…"
	mark := ellipsis
	if limit < 2*len(ellipsis) {
		mark = ""
	}
	cut := limit - len(mark)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return strings.TrimRight(text[:cut], " ") + mark
}
