package fulltext

import (
	"strings"
	"unicode"

	"github.com/kljensen/snowball/english"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

const (
	maxTermRunes  = 64      // longer words (base64, hashes, URLs) are cut: their beginning still finds them
	maxQueryTerms = 64      // of a longer query the first half and the last half of these are asked
	maxQueryBytes = 1 << 16 // of a longer query the beginning and the end are looked at
)

// Analyze returns the terms under which a text is found, in the order of the text, repetitions included: normalised
// (NFKC, case folded, Latin letters without their accents), English stop words removed and English words stemmed. Text
// in scripts written without spaces yields its characters and its pairs of neighbouring characters.
func Analyze(text string) []string { return analyze(text, false) }

// AnalyzeQuery returns the terms that a query looks for, without repetitions. Everything in a query is text: there is
// no syntax. Of a run of characters without spaces it looks for the pairs and the Han characters; for a single
// character as such. A query too long is asked by its beginning and its end.
func AnalyzeQuery(query string) []string {
	if n := len(query); n > maxQueryBytes {
		query = query[:maxQueryBytes/2] + " " + query[n-maxQueryBytes/2:]
	}
	terms := analyze(query, true)
	seen := make(map[string]bool, len(terms))
	unique := terms[:0]
	for _, t := range terms {
		if !seen[t] {
			seen[t] = true
			unique = append(unique, t)
		}
	}
	if n := len(unique); n > maxQueryTerms {
		unique = append(unique[:maxQueryTerms/2], unique[n-maxQueryTerms/2:]...)
	}
	return unique
}

func analyze(text string, query bool) []string {
	var terms []string
	for word := range words(normalize(text)) {
		if first := []rune(word)[0]; unspaced(first) {
			terms = appendGrams(terms, word, query)
		} else if t := term(word); t != "" {
			terms = append(terms, t)
		}
	}
	return terms
}

func normalize(text string) string {
	return cases.Fold().String(norm.NFKC.String(strings.ToValidUTF8(text, " ")))
}

// words yields the maximal runs of letters, digits and marks, apostrophes inside a word included. A run ends where
// script written without spaces meets one written with them.
func words(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		start, dense := -1, false
		for i, r := range text {
			switch {
			case start >= 0 && (unicode.Is(unicode.M, r) || isApostrophe(r) && !dense):
				// Stays in the word.
			case unicode.IsLetter(r) || unicode.IsNumber(r):
				d := unspaced(r)
				if start >= 0 && d != dense {
					if !yield(text[start:i]) {
						return
					}
					start = i
				}
				if start < 0 {
					start = i
				}
				dense = d
			case start >= 0:
				if !yield(text[start:i]) {
					return
				}
				start = -1
			}
		}
		if start >= 0 {
			yield(text[start:])
		}
	}
}

// unspaced reports whether a rune belongs to a script that does not separate words by spaces, or, as Hangul, glues
// particles to them.
func unspaced(r rune) bool {
	if r < 0x0E00 {
		return false
	}
	return r == 'ー' || r == '々' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

func isApostrophe(r rune) bool { return r == '\'' || r == '’' }

// appendGrams adds single characters and pairs of neighbours of a run without spaces.
func appendGrams(terms []string, run string, query bool) []string {
	runes := []rune(run)
	for i, r := range runes {
		if !query || len(runes) == 1 || unicode.Is(unicode.Han, r) {
			terms = append(terms, string(r))
		}
		if i+1 < len(runes) {
			terms = append(terms, string(runes[i:i+2]))
		}
	}
	return terms
}

// term makes the term of one word, or "" when the word is not worth a term.
func term(word string) string {
	word = plainWord(word)
	if tooShort(word) || stopWords[word] {
		return ""
	}
	if runes := []rune(word); len(runes) > maxTermRunes {
		return string(runes[:maxTermRunes])
	}
	if isASCIILetters(word) {
		return english.Stem(word, false)
	}
	return word
}

// plainWord takes English endings behind an apostrophe off, and the accents of Latin letters.
func plainWord(word string) string {
	if i := strings.IndexFunc(word, isApostrophe); i >= 0 {
		parts := strings.FieldsFunc(word, isApostrophe)
		if n := len(parts); n > 1 && englishEndings[parts[n-1]] {
			parts = parts[:n-1]
		}
		word = strings.Join(parts, "")
	}
	for _, r := range word {
		if r >= 0x80 && unicode.Is(unicode.Latin, r) {
			return strings.Map(func(r rune) rune {
				if unicode.Is(unicode.Mn, r) {
					return -1
				}
				return r
			}, norm.NFD.String(word))
		}
	}
	return word
}

// tooShort reports whether a word is a single letter of an alphabet. Digits and single characters of other scripts
// mean something alone.
func tooShort(word string) bool {
	runes := []rune(word)
	if len(runes) == 0 {
		return true
	}
	return len(runes) == 1 && unicode.In(runes[0], unicode.Latin, unicode.Greek, unicode.Cyrillic)
}

func isASCIILetters(word string) bool {
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return false
		}
	}
	return true
}
