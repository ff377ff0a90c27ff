package observer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// repeatsToolOutput reports whether the note shares a run of at least limit bytes with a tool result, comparing letters
// and digits only. It indexes every run of the note (which is short) and rolls over the results once.
func repeatsToolOutput(note string, messages []Message, limit int) bool {
	needle := normalise(make([]byte, 0, len(note)), note)
	if len(needle) < limit {
		return false
	}
	index := make(map[uint64]int, len(needle)-limit+1)
	roll(needle, limit, func(at int, hash uint64) bool {
		index[hash] = at
		return true
	})
	found := false
	for _, m := range messages {
		if m.Content == nil {
			continue
		}
		for _, p := range m.Content.Parts {
			if found || p == nil {
				continue
			}
			var hay []byte
			eachOutput(p, func(text string) { hay = normalise(hay, text) })
			roll(hay, limit, func(at int, hash uint64) bool {
				i, ok := index[hash]
				found = ok && string(needle[i:i+limit]) == string(hay[at:at+limit])
				return !found
			})
		}
	}
	return found
}

// roll calls visit with the hash of each run of the given size, until it returns false.
func roll(text []byte, size int, visit func(at int, hash uint64) bool) {
	const base = 0x9E3779B97F4A7C15
	if len(text) < size {
		return
	}
	var hash, top uint64 = 0, 1
	for i := range size {
		hash = hash*base + uint64(text[i]) + 1
		top *= base
	}
	for i := size; ; i++ {
		if !visit(i-size, hash) || i == len(text) {
			return
		}
		hash = hash*base + uint64(text[i]) + 1 - top*(uint64(text[i-size])+1)
	}
}

// normalise appends the letters and digits of text, in lower case.
func normalise(into []byte, text string) []byte {
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			i++
			switch {
			case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
				into = append(into, c)
			case c >= 'A' && c <= 'Z':
				into = append(into, c+'a'-'A')
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if isWordRune(r) || unicode.IsMark(r) {
			into = append(into, strings.ToLower(text[i:i+n])...)
		}
		i += n
	}
	return into
}
