package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"
)

// facts are the distinct names, numbers and dates of some text, in a normal form: "name:caroline", "number:360",
// "date:2023-05-07". A date without a year is "date:05-07".
type facts map[string]bool

var (
	isoDate = regexp.MustCompile(`\b(\d{4})-(\d{2})-(\d{2})\b`)
	months  = `(January|February|March|April|May|June|July|August|September|October|November|December|` +
		`Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.?`
	dayFirst = regexp.MustCompile(`\b(\d{1,2})(?:st|nd|rd|th)?(?: of)? ` + months + `(?:,? (\d{4}))?\b`)
	dayLast  = regexp.MustCompile(`\b` + months + ` (\d{1,2})(?:st|nd|rd|th)?(?:,? (\d{4}))?\b`)
	word     = regexp.MustCompile(`[\p{L}\p{N}]+(?:[.,:'’_-][\p{L}\p{N}]+)*`)
)

// factsOf finds facts without any knowledge of how notes are written. A capitalised word is a name where it does not
// begin a sentence; known adds the names found so elsewhere, which count at a sentence's start too.
func factsOf(text string, known facts) facts {
	found := facts{}
	text = takeDates(text, found)
	start := true // of a sentence
	end := 0
	for _, at := range word.FindAllStringIndex(text, -1) {
		if strings.ContainsAny(text[end:at[0]], ".!?\n\"“:;*>•[") {
			start = true
		}
		w := text[at[0]:at[1]]
		first, _ := utf8.DecodeRuneInString(w)
		switch name := strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(w, "'s"), "’s")); {
		case strings.ContainsFunc(w, unicode.IsDigit):
			found["number:"+strings.ToLower(strings.ReplaceAll(w, ",", ""))] = true
		case !unicode.IsUpper(first) || len(w) < 3 || strings.ContainsAny(w, "'’") && name == strings.ToLower(w):
			// a common word, "I", "OK" or a contraction
		case !start || known["name:"+name]:
			found["name:"+name] = true
		}
		start, end = false, at[1]
	}
	return found
}

// takeDates adds the dates of a text and returns the text without them.
func takeDates(text string, found facts) string {
	take := func(pattern *regexp.Regexp, year, month, day int) {
		text = pattern.ReplaceAllStringFunc(text, func(match string) string {
			m := pattern.FindStringSubmatch(match)
			monthText := m[month]
			if t, err := time.Parse("Jan", monthText[:min(3, len(monthText))]); err == nil {
				monthText = fmt.Sprintf("%02d", t.Month())
			}
			date := fmt.Sprintf("%s-%02s", monthText, m[day])
			if m[year] != "" {
				date = m[year] + "-" + date
			}
			found["date:"+date] = true
			return " "
		})
	}
	take(isoDate, 1, 2, 3)
	take(dayFirst, 3, 2, 1)
	take(dayLast, 3, 1, 2)
	return text
}

// holds reports whether a fact is among those of a text. A date without a year is held by the same day of any year.
func (f facts) holds(fact string) bool {
	if f[fact] {
		return true
	}
	day, isDate := strings.CutPrefix(fact, "date:")
	if !isDate || len(day) != len("01-02") {
		return false
	}
	for other := range f {
		if strings.HasPrefix(other, "date:") && strings.HasSuffix(other, "-"+day) {
			return true
		}
	}
	return false
}

// retention counts the distinct facts of the observed messages, and how many of them the notes and the lead hold. The
// lead is what a summary without any thought would keep in as many bytes: the first sentences of the messages, either
// those that come first, or all of them cut to one length, whichever holds more.
func retention(observed []string, notes string) (all, held, lead int) {
	source := strings.Join(observed, "\n")
	known := factsOf(source, nil)
	facts := factsOf(source, known)
	count := func(text string) int {
		in, n := factsOf(text, known), 0
		for fact := range facts {
			if in.holds(fact) {
				n++
			}
		}
		return n
	}
	first := make([]string, len(observed))
	for i, m := range observed {
		first[i] = firstSentence(m)
	}
	lead = max(count(cut(strings.Join(first, "\n"), len(notes))), count(cutEach(first, evenCut(first, len(notes)))))
	return len(facts), count(notes), lead
}

// cut returns the first n bytes of a text, less a character that would be broken.
func cut(text string, n int) string { return strings.ToValidUTF8(text[:min(n, len(text))], "") }

func cutEach(texts []string, n int) string {
	var all strings.Builder
	for _, t := range texts {
		all.WriteString(cut(t, n))
		all.WriteByte('\n')
	}
	return all.String()
}

// evenCut is the length to which all texts must be cut so that together they are about total bytes long.
func evenCut(texts []string, total int) int {
	lengths := make([]int, len(texts))
	for i, t := range texts {
		lengths[i] = len(t)
	}
	sort.Ints(lengths)
	for i, n := range lengths {
		left := len(lengths) - i
		if n*left > total {
			return total / left
		}
		total -= n
	}
	if len(lengths) == 0 {
		return 0
	}
	return lengths[len(lengths)-1]
}

var sentenceEnd = regexp.MustCompile(`[.!?]['"”)]*\s|[。！？\n]`)

func firstSentence(text string) string {
	if at := sentenceEnd.FindStringIndex(text); at != nil {
		return text[:at[1]]
	}
	return text
}

// messageText is a message as text: what was said, and calls and results as JSON.
func messageText(c *genai.Content) string {
	var parts []string
	for _, p := range c.Parts {
		switch {
		case p.Text != "":
			parts = append(parts, p.Text)
		case p.FunctionCall != nil:
			args, _ := json.Marshal(p.FunctionCall.Args)
			parts = append(parts, p.FunctionCall.Name+" "+string(args))
		case p.FunctionResponse != nil:
			response, _ := json.Marshal(p.FunctionResponse.Response)
			parts = append(parts, string(response))
		}
	}
	return strings.Join(parts, "\n")
}

// keptFacts compares the active notes of a session with the messages that they and the archived ones cover.
func keptFacts(events []*session.Event, book *noteBook) (all, held, lead int) {
	line := newTimeline(events)
	in := map[string]bool{}
	var active []string
	ids := make([]string, 0, len(book.notes))
	for id := range book.notes {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		note := book.notes[id]
		if note.Generation == 0 {
			line.mark(note.Note, in)
		}
		if note.Active {
			active = append(active, note.Text)
		}
	}
	var observed []string
	for _, e := range events {
		if in[e.ID] && e.Content != nil {
			observed = append(observed, messageText(e.Content))
		}
	}
	if len(observed) == 0 {
		return 0, 0, 0
	}
	return retention(observed, strings.Join(active, "\n"))
}
