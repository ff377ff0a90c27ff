package retriever

import (
	"strings"
	"unicode"

	"github.com/adkmemory/adkmemory/backends/fulltext"
)

// Keywords returns the words of a text that say something, in lower case, in order, each once. Words end at white space
// and lose the punctuation around them, not that inside ("node.js", "user-id"). English stop words are left out, and
// so are words of a single Latin letter; "Go", "CI" and "DB" stay, and so does a single character of another script.
func Keywords(text string) []string {
	var out []string
	seen := map[string]bool{}
	for _, word := range strings.Fields(strings.ToValidUTF8(text, " ")) {
		word = strings.ToLower(strings.TrimFunc(word, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
		}))
		runes := []rune(word)
		single := len(runes) == 1 && unicode.Is(unicode.Latin, runes[0])
		if word == "" || single || seen[word] || fulltext.IsStopWord(word) {
			continue
		}
		seen[word] = true
		out = append(out, word)
	}
	return out
}
