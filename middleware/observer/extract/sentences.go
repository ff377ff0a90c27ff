package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxSentence is the length in bytes past which a sentence is taken apart at a comma or a space.
const maxSentence = 240

// split returns the sentences of a line, white space collapsed, list marks removed.
func split(l *Line) []string {
	valid := Sanitise(l.Text)
	if l.Whole {
		if text := strings.Join(strings.Fields(valid), " "); text != "" {
			return []string{text}
		}
		return nil
	}
	var out []string
	add := func(text string) {
		text = trimMark(strings.Join(strings.Fields(strings.ReplaceAll(text, "**", "")), " "))
		for len(text) > maxSentence {
			cut := breakPoint(text[:maxSentence])
			out = append(out, strings.TrimRight(text[:cut], " ,;:、，；"))
			text = strings.TrimLeft(text[cut:], " ,;:、，；")
		}
		if text != "" {
			out = append(out, text)
		}
	}
	text, start := valid, 0
	for i, r := range text {
		if i < start {
			continue
		}
		next := i + utf8.RuneLen(r)
		switch {
		case isBreak(r):
			add(text[start:i])
			start = next
		case isEnd(r):
			for next < len(text) { // "?!", "...", and a closing quote belong to the sentence
				c, n := utf8.DecodeRuneInString(text[next:])
				if !isEnd(c) && !strings.ContainsRune(`"'”’»)]」』）`, c) {
					break
				}
				next += n
			}
			if wideEnd(r) || (next == len(text) || isSpaceAt(text, next)) && (r != '.' || !abbreviates(text[start:i])) {
				add(text[start:next])
				start = next
			}
		}
	}
	add(text[start:])
	return out
}

// Sanitise makes text fit to be stored anywhere: bytes that are not UTF-8 become U+FFFD, and control characters other
// than white space, which some databases refuse, are removed.
func Sanitise(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if strings.IndexFunc(text, isControl) < 0 {
		return text
	}
	return strings.Map(func(r rune) rune {
		if isControl(r) {
			return -1
		}
		return r
	}, text)
}

func isControl(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }

func isBreak(r rune) bool {
	return r == '\n' || r == '\r' || r == '\v' || r == '\f' || r == 0x85 || r == 0x2028 || r == 0x2029
}

func isEnd(r rune) bool {
	return r == '.' || r == '!' || r == '?' || r == '…' || r == '؟' || r == '।' || wideEnd(r)
}

// wideEnd reports the ends of sentences in scripts that put no space behind them.
func wideEnd(r rune) bool { return r == '。' || r == '！' || r == '？' || r == '．' }

func endsSentence(text string) bool {
	text = strings.TrimRight(text, `"'”’»)]」』）`)
	r, _ := utf8.DecodeLastRuneInString(text)
	return isEnd(r) || r == ':' || r == ';' || r == ','
}

func isSpaceAt(text string, i int) bool {
	r, _ := utf8.DecodeRuneInString(text[i:])
	return unicode.IsSpace(r)
}

// abbreviates reports whether a full stop after text belongs to its last word: an initial, a title, a list number.
func abbreviates(text string) bool {
	word := text[strings.LastIndexAny(text, " \t(")+1:]
	switch strings.ToLower(word) {
	case "dr", "mr", "mrs", "ms", "st", "prof", "no", "vs", "e.g", "i.e", "approx", "dept", "fig":
		return true
	}
	if len(word) == 1 && word != "I" && word[0] < utf8.RuneSelf && unicode.IsLetter(rune(word[0])) {
		return true
	}
	return word == text && len(word) <= 3 && strings.Trim(word, "0123456789") == ""
}

// trimMark removes the mark of a list item: "- ", "* ", "• ", "1. ", "2) ", and heading marks.
func trimMark(text string) string {
	text = strings.TrimLeft(text, "-*•#> ")
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	if digits > 0 && digits <= 3 && len(text) > digits+1 && strings.ContainsRune(".)", rune(text[digits])) && text[digits+1] == ' ' {
		text = text[digits+2:]
	}
	return text
}

// breakPoint is where to cut a text that is too long, behind the last comma if it is past the middle, else behind the
// last space or character.
func breakPoint(text string) int {
	cut := 0
	for i, r := range text {
		next := i + utf8.RuneLen(r)
		if (r == ',' || r == ';' || r == ':') && next < len(text) && text[next] == ' ' || strings.ContainsRune("、，；：", r) {
			cut = next
		}
	}
	if cut < len(text)/2 {
		if i := strings.LastIndexByte(text, ' '); i > 0 {
			return i
		}
		cut = len(text)
		for cut > 0 && !utf8.RuneStart(text[cut-1]) {
			cut--
		}
		cut--
	}
	return max(1, cut)
}

// importance weighs what a sentence does beyond naming facts: a bonus for asking, wanting, deciding, promising,
// confirming or reporting an outcome, and a factor below one for questions that only keep a talk going. The words are
// English; questions are seen in any language.
//
// The scale of what somebody who asks wants is above one: it must win over an answer that repeats it.
func importance(text string, asks bool) (bonus, scale float64) {
	scale = 1
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '’' }) {
		if len(word) > 12 {
			continue
		}
		switch strings.ToLower(word) {
		case "decided", "decide", "agreed", "confirm", "confirmed", "booked", "cancelled", "canceled", "chose", "refund",
			"bought", "started", "finished", "completed", "failed", "error", "changed", "updated", "deadline", "goal",
			"unable", "denied", "moved", "married", "joined", "signed", "won", "lost", "cannot", "allergic", "instead":
			bonus += 0.6
		case "want", "wants", "need", "needs", "prefer", "plan", "planning", "must", "yes", "proceed", "please", "would",
			"can", "could", "i'll", "i’ll", "let's", "let’s", "don't", "don’t", "because", "favorite", "favourite", "looking",
			"book", "buy", "order", "cancel", "change", "modify":
			if asks {
				bonus += 0.3
				scale = asked
			}
		}
	}
	if strings.ContainsAny(text, "?？؟") {
		switch {
		case utf8.RuneCountInString(text) < 40 && !wide(text):
			scale *= 0.4
		case asks:
			bonus += 0.3
		default:
			scale *= 0.6
		}
	}
	return min(bonus, 1.2), scale
}

const asked = 1.4

func wide(text string) bool { return strings.ContainsFunc(text, isWide) }
