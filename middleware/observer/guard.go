package observer

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/adkmemory/adkmemory/middleware/observer/extract"
	"github.com/adkmemory/adkmemory/middleware/token"
)

// DefaultVerbatimBytes is the longest run of tool output that a note may repeat word for word.
const DefaultVerbatimBytes = 160

// maxSizeFactor is how far a note may miss the size asked for: models count badly.
const maxSizeFactor = 2

// Guard bounds what a note may be.
type Guard struct {
	Counter token.Counter // default [token.Estimator]

	// MaxVerbatimBytes is the longest run of a tool result that a note may repeat, in bytes of its letters and digits:
	// white space, punctuation and case are not compared, so that a reformatted copy is still a copy. Default
	// [DefaultVerbatimBytes].
	MaxVerbatimBytes int
}

// Check reports why a note over the request's messages is refused, nil when it is not. The reasons: no letter and no
// digit in it ([ErrEmpty]), more tokens than its source or than twice the size asked for ([ErrTooLong]), the same words
// again and again ([ErrRepetitive]), a long run of a tool result ([ErrVerbatim]). It takes time linear in the sizes of
// the note and of the tool results.
func Check(note string, req Request, g Guard) error {
	if g.Counter == nil {
		g.Counter = token.Estimator{}
	}
	if g.MaxVerbatimBytes <= 0 {
		g.MaxVerbatimBytes = DefaultVerbatimBytes
	}
	if err := CheckText(note); err != nil {
		return err
	}
	tokens, source := g.Counter.Count(note), req.sourceTokens(g.Counter)
	if tokens > source {
		return fmt.Errorf("%w: %d tokens over a source of %d", ErrTooLong, tokens, source)
	}
	if limit := maxSizeFactor * max(req.target(g.Counter), MinNoteTokens); tokens > limit {
		return fmt.Errorf("%w: %d tokens, at most %d are accepted", ErrTooLong, tokens, limit)
	}
	if repeatsToolOutput(note, req.Messages, g.MaxVerbatimBytes) {
		return ErrVerbatim
	}
	return nil
}

// CheckText is the part of [Check] that needs the note alone: [ErrEmpty] and [ErrRepetitive].
func CheckText(note string) error {
	if !strings.ContainsFunc(note, isWordRune) {
		return ErrEmpty
	}
	if repetitive(note) {
		return ErrRepetitive
	}
	return nil
}

// Clean removes what models put around an answer, a code fence around all of it and headings in front of it, and what
// cannot be stored (see [extract.Sanitise]).
func Clean(text string) string {
	text = strings.TrimSpace(extract.Sanitise(text))
	if inner, ok := strings.CutPrefix(text, "```"); ok {
		if body, ok := strings.CutSuffix(inner, "```"); ok && !strings.Contains(body, "```") {
			if _, rest, ok := strings.Cut(body, "\n"); ok {
				text = strings.TrimSpace(rest)
			}
		}
	}
	for strings.HasPrefix(strings.TrimLeft(text, "#"), " ") && text[0] == '#' {
		_, rest, ok := strings.Cut(text, "\n")
		if !ok {
			break
		}
		text = strings.TrimSpace(rest)
	}
	return text
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

const (
	repeatWindow = 48 // words
	repeatGram   = 3
	// Of the three-word sequences in a window, at least this share must differ. Lists and tables of real notes stay
	// above 0.8; a loop of up to fifteen words falls below.
	repeatDistinct = 0.34
	repeatMinWords = 15
	longestWord    = 24 // runes; what is longer is taken apart, for a loop may come without spaces
	wordPiece      = 4
)

// repetitive reports whether some stretch of the note goes round in circles.
func repetitive(note string) bool {
	words := splitWords(note)
	if len(words) < repeatMinWords {
		return false
	}
	window := min(repeatWindow, len(words))
	grams := make([][repeatGram]string, len(words)-repeatGram+1)
	for i := range grams {
		grams[i] = [repeatGram]string(words[i : i+repeatGram])
	}
	size := window - repeatGram + 1
	seen := make(map[[repeatGram]string]int, size)
	for i, g := range grams {
		seen[g]++
		if i >= size {
			old := grams[i-size]
			if seen[old]--; seen[old] == 0 {
				delete(seen, old)
			}
		}
		if i >= size-1 && float64(len(seen)) < repeatDistinct*float64(size) {
			return true
		}
	}
	return false
}

// splitWords returns lower-case words; runes of scripts without spaces are words of their own.
func splitWords(text string) []string {
	text = strings.ToLower(text)
	words := make([]string, 0, len(text)/5)
	start, runes := -1, 0
	end := func(i int) {
		if start >= 0 {
			words = append(words, text[start:i])
		}
		start, runes = -1, 0
	}
	for i, r := range text {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
			end(i)
			start = i
			end(i + len(string(r)))
		case isWordRune(r) || unicode.IsMark(r):
			if start < 0 {
				start = i
			}
			if runes++; runes > longestWord && runes%wordPiece == 1 {
				keep := runes
				end(i)
				start, runes = i, keep
			}
		default:
			end(i)
		}
	}
	end(len(text))
	return words
}
