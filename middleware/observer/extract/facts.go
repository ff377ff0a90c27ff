package extract

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// facts numbers the distinct facts of a text. A hard fact is a name, a number, a date or an identifier; a soft one is
// any other word that carries meaning, of little weight, which tells apart texts without hard ones.
type facts struct {
	ids    map[string]int
	weight []float64
	count  []int
	names  map[string]bool // lower-case words that were seen with a capital inside a sentence
}

const (
	hardWeight  = 1.0
	codeWeight  = 1.3 // letters and digits, which name something and are never guessed
	smallNumber = 0.6
	softWeight  = 0.12
)

// span is where one or more neighbouring hard facts stand in a sentence.
type span struct {
	start, end int
	facts      []int
}

func newFacts() *facts {
	return &facts{ids: make(map[string]int, 512), names: make(map[string]bool, 64)}
}

// learnNames notes the words that a text spells with a capital inside a sentence; an item is no sentence. It comes
// before learn.
func (f *facts) learnNames(text string, item bool) {
	words(text, func(w word) {
		if w.capital && (item || !w.first) {
			f.names[key(w.text)] = true
		}
	})
}

// weigh raises what comes up again and again: it matters more, but not so much that it crowds out the rest.
func (f *facts) weigh() {
	for id, n := range f.count {
		f.weight[id] *= 1 + 0.15*math.Log(float64(n))
	}
}

// learn numbers the facts of a text and counts them.
func (f *facts) learn(text string) {
	words(text, func(w word) {
		k, hard, ok := f.classify(w)
		if !ok {
			return
		}
		id, known := f.ids[k]
		if !known {
			id = len(f.weight)
			f.ids[k] = id
			f.weight = append(f.weight, softWeight)
			f.count = append(f.count, 0)
		}
		f.count[id]++
		if hard {
			f.weight[id] = hardWeight
			switch {
			case w.digit && w.runes <= 2:
				f.weight[id] = smallNumber
			case w.digit && (w.capital || w.inner):
				f.weight[id] = codeWeight
			}
		}
	})
}

// of returns the distinct facts of a text that was learned, and where its hard ones stand.
func (f *facts) of(text string) (ids []int, spans []span) {
	lastHard := -1
	words(text, func(w word) {
		k, hard, ok := f.classify(w)
		if id, known := f.ids[k]; ok && known {
			if !contains(ids, id) {
				ids = append(ids, id)
			}
			if hard {
				if n := len(spans); lastHard == w.index-1 && n > 0 && spans[n-1].joins(text, w) {
					spans[n-1].end = w.end
					spans[n-1].facts = append(spans[n-1].facts, id)
				} else {
					spans = append(spans, span{start: w.start, end: w.end, facts: []int{id}})
				}
				lastHard = w.index
				return
			}
		}
		// A bare number says little: the word behind it goes along.
		if n := len(spans); n > 0 && lastHard == w.index-1 && w.start-spans[n-1].end <= 1 && len(w.text) <= 12 &&
			len(w.text) >= 3 && !functionWord(w.text) && startsWithDigit(text[spans[n-1].start:]) && strings.IndexByte(text[spans[n-1].start:spans[n-1].end], ' ') < 0 {
			spans[n-1].end = w.end
		}
	})
	return ids, spans
}

func (s span) joins(text string, w word) bool {
	between := text[s.end:w.start]
	return len(s.facts) < 4 && (between == " " || between == "")
}

func contains(ids []int, id int) bool {
	for _, have := range ids {
		if have == id {
			return true
		}
	}
	return false
}

func startsWithDigit(text string) bool {
	text = strings.TrimLeft(text, "$€£¥#~+-")
	return text != "" && text[0] >= '0' && text[0] <= '9'
}

// classify returns the key of the fact that a word is, and whether it is a hard one.
func (f *facts) classify(w word) (k string, hard, ok bool) {
	switch {
	case w.digit:
		return key(w.text), true, true
	case w.katakana && w.runes >= 2:
		return w.text, true, true
	case w.capital && !functionWord(key(w.text)):
		k = key(w.text)
		if !w.first || w.inner || f.names[k] {
			return k, true, true
		}
	case w.inner:
		return key(w.text), true, true
	case w.wide:
		return w.text, false, true
	}
	if w.runes < 4 && !w.wide && (w.text[0] < utf8.RuneSelf || w.runes < 2) { // short words of other scripts may say much
		return "", false, false
	}
	k = key(w.text)
	return k, false, !stopWord(k)
}

// key folds what makes no difference: case, and the possessive.
func key(word string) string {
	k := strings.ToLower(word)
	k = strings.TrimSuffix(k, "'s")
	return strings.TrimSuffix(k, "’s")
}

// word is one word of a sentence.
type word struct {
	text       string
	start, end int
	index      int
	runes      int
	first      bool // nothing but punctuation before it in the sentence
	capital    bool // begins with an upper-case letter, and is not the English "I"
	inner      bool // an upper-case letter, an underscore or an at sign further in
	digit      bool
	wide       bool // of a script that puts no spaces between words
	katakana   bool
}

// words visits the words of a sentence: what stands between white space, without the punctuation around it. Of scripts
// without spaces it visits overlapping pairs of characters, and runs of katakana, which mostly write names.
func words(text string, visit func(word)) {
	index, first := 0, true
	emit := func(start, end int) {
		w := trimmed(text, start, end)
		if w.text == "" {
			return
		}
		w.index, w.first = index, first
		index++
		first = false
		if w.capital && isPronoun(w.text) {
			w.capital = false
		}
		visit(w)
	}
	start := -1
	for i := 0; i < len(text); {
		r, n := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(text[i:])
		}
		switch {
		case r < utf8.RuneSelf && r > ' ' && !strings.ContainsRune(`()[]{}"=|*<>`, r):
			if start < 0 {
				start = i
			}
		case r < utf8.RuneSelf || unicode.IsSpace(r) || r == '—' || r == '–' || r == '…':
			if start >= 0 {
				emit(start, i)
			}
			start = -1
		case isWide(r):
			if start >= 0 {
				emit(start, i)
			}
			start = -1
			end := wideRun(text, i)
			wideWords(text, i, end, &index, visit)
			first = false
			i = end
			continue
		default:
			if start < 0 {
				start = i
			}
		}
		i += n
	}
	if start >= 0 {
		emit(start, len(text))
	}
}

// trimmed classifies text[start:end] without the punctuation around it.
func trimmed(text string, start, end int) word {
	for start < end {
		r, n := utf8.DecodeRuneInString(text[start:end])
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("$€£¥", r) {
			break
		}
		start += n
	}
	for start < end {
		r, n := utf8.DecodeLastRuneInString(text[start:end])
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '%' {
			break
		}
		end -= n
	}
	w := word{text: text[start:end], start: start, end: end}
	for i, r := range w.text {
		w.runes++
		switch {
		case r >= '0' && r <= '9' || r >= utf8.RuneSelf && unicode.IsDigit(r):
			w.digit = true
		case unicode.IsUpper(r):
			if i == 0 {
				w.capital = true
			} else {
				w.inner = true
			}
		case r == '_' || r == '@':
			w.inner = true
		}
	}
	return w
}

func isPronoun(w string) bool {
	return w == "I" || strings.HasPrefix(w, "I'") || strings.HasPrefix(w, "I’")
}

func isWide(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) ||
		r == 'ー'
}

func isKatakana(r rune) bool { return unicode.Is(unicode.Katakana, r) || r == 'ー' }

func wideRun(text string, from int) int {
	for i, r := range text[from:] {
		if !isWide(r) {
			return from + i
		}
	}
	return len(text)
}

func wideWords(text string, from, to int, index *int, visit func(word)) {
	visitWide := func(start, end, runes int, katakana bool) {
		visit(word{text: text[start:end], start: start, end: end, index: *index, runes: runes, wide: true, katakana: katakana})
		*index++
	}
	prev := -1 // start of the last character that is no katakana
	for i := from; i < to; {
		r, n := utf8.DecodeRuneInString(text[i:to])
		if isKatakana(r) {
			start, runes := i, 0
			for i < to {
				r, n = utf8.DecodeRuneInString(text[i:to])
				if !isKatakana(r) {
					break
				}
				i += n
				runes++
			}
			visitWide(start, i, runes, true)
			prev = -1
			continue
		}
		if prev >= 0 {
			visitWide(prev, i+n, 2, false)
		}
		prev = i
		i += n
	}
}

// functionWord reports English words that name nothing, whatever their case, and say nothing behind a number.
func functionWord(w string) bool {
	switch w {
	case "a", "an", "is", "it", "in", "on", "of", "to", "at", "by", "as", "or", "so", "if", "no", "my", "we", "he", "me", "do",
		"these", "those", "here", "what", "how", "why", "where", "yes", "just", "also", "can", "could", "would", "will", "let",
		"please", "thanks", "thank", "wow", "hey", "and", "the", "for", "was", "were", "are", "with", "from", "but", "that", "this", "when", "not", "has", "have", "since",
		"because", "which", "who", "you", "she", "they", "there", "then", "than", "into", "our", "his", "her", "their":
		return true
	}
	return false
}

// stopWord reports frequent English words of four letters and more; shorter ones carry no weight in any language.
func stopWord(w string) bool {
	switch w {
	case "that", "this", "with", "have", "from", "they", "your", "what", "when", "were", "been", "will", "would", "there",
		"their", "about", "which", "could", "should", "really", "very", "just", "like", "some", "such", "them", "then", "than",
		"into", "also", "only", "over", "here", "more", "much", "that's", "it's", "you're", "i've", "i'm", "don't", "can't",
		"please", "thank", "thanks", "great", "good", "nice", "sure", "okay", "help", "know", "glad", "hear", "awesome", "sounds",
		"cool", "amazing", "wow", "yeah", "hello", "hey", "today", "anything", "else", "further":
		return true
	}
	return false
}
