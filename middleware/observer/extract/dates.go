package extract

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// resolveDates puts the absolute date behind each relative one ("yesterday (2023-05-07)") and returns the text and the
// number of dates it put in. Without a time nothing changes. Languages it does not know keep their words; the date in
// the line's label is what anchors them.
func resolveDates(text string, at time.Time) (string, int) {
	if at.IsZero() {
		return text, 0
	}
	tokens := dateWords(text)
	var b strings.Builder
	done, found := 0, 0
	for i := 0; i < len(tokens); {
		used, date := relative(tokens[i:], at)
		if used == 0 {
			i++
			continue
		}
		end := tokens[i+used-1].end
		i += used
		if strings.HasPrefix(text[end:], " (") && len(text) > end+2 && text[end+2] >= '0' && text[end+2] <= '9' {
			continue // resolved before
		}
		b.WriteString(text[done:end])
		b.WriteString(" (" + date + ")")
		done = end
		found++
	}
	if found == 0 {
		return text, 0
	}
	b.WriteString(text[done:])
	return b.String(), found
}

type dateWord struct {
	text string // lower case
	end  int
}

// dateWords returns the words of a text that could belong to a relative date, in place; other words are empty, so that
// neighbours stay neighbours.
func dateWords(text string) []dateWord {
	var out []dateWord
	start := -1
	for i, r := range text {
		if unicode.IsLetter(r) && !isWide(r) || r >= '0' && r <= '9' || r == '\'' && start >= 0 {
			if start < 0 {
				start = i
			}
			continue
		}
		if start >= 0 {
			out = append(out, dateWord{strings.ToLower(text[start:i]), i})
			start = -1
		}
		if isWide(r) {
			for _, w := range [...]string{"昨日", "今日", "明日", "昨天", "今天", "明天", "前天", "后天"} {
				if strings.HasPrefix(text[i:], w) {
					out = append(out, dateWord{w, i + len(w)})
				}
			}
		} else if r != ' ' {
			out = append(out, dateWord{"", i + utf8.RuneLen(r)}) // punctuation keeps words apart
		}
	}
	if start >= 0 {
		out = append(out, dateWord{strings.ToLower(text[start:]), len(text)})
	}
	return out
}

// relative reads a relative date at the beginning of w: how many words it takes, and the date.
func relative(w []dateWord, at time.Time) (used int, date string) {
	word := func(i int) string {
		if i < len(w) {
			return w[i].text
		}
		return ""
	}
	day := func(used, days int) (int, string) { return used, at.AddDate(0, 0, days).Format(time.DateOnly) }
	switch word(0) {
	case "yesterday", "gestern", "ayer", "昨日", "昨天", "어제":
		return day(1, -1)
	case "today", "tonight", "heute", "hoy", "今日", "今天", "오늘":
		return day(1, 0)
	case "tomorrow", "明日", "明天", "내일":
		return day(1, 1)
	case "vorgestern", "前天":
		return day(1, -2)
	case "übermorgen", "后天":
		return day(1, 2)
	case "day":
		if word(1) == "before" && word(2) == "yesterday" {
			return day(3, -2)
		}
		if word(1) == "after" && word(2) == "tomorrow" {
			return day(3, 2)
		}
	case "last", "next", "this", "past", "coming":
		return named(word(0), word(1), at)
	}
	n, ok := number(word(0))
	if !ok {
		return 0, ""
	}
	if word(2) == "ago" {
		if date := shift(at, -n, word(1)); date != "" {
			return 3, date
		}
	}
	return 0, ""
}

// named resolves "last week", "next Friday", "this month".
func named(which, what string, at time.Time) (int, string) {
	step := 0
	switch which {
	case "last", "past":
		step = -1
	case "next", "coming":
		step = 1
	}
	switch what {
	case "night":
		if step == -1 {
			return 2, at.AddDate(0, 0, -1).Format(time.DateOnly)
		}
	case "morning", "afternoon", "evening":
		if step == 0 {
			return 2, at.Format(time.DateOnly)
		}
	case "week":
		return 2, "week of " + monday(at).AddDate(0, 0, 7*step).Format(time.DateOnly)
	case "weekend":
		return 2, "weekend of " + monday(at).AddDate(0, 0, 7*step+5).Format(time.DateOnly)
	case "month":
		return 2, time.Date(at.Year(), at.Month()+time.Month(step), 1, 0, 0, 0, 0, at.Location()).Format("2006-01")
	case "year", "summer", "spring", "fall", "autumn":
		if what == "year" || step == 0 {
			return 2, strconv.Itoa(at.Year() + step)
		}
	}
	if wanted, ok := weekday(what); ok {
		days := int(wanted) - int(at.Weekday())
		switch {
		case step < 0 && days >= 0:
			days -= 7
		case step > 0 && days <= 0, step == 0 && days < 0:
			days += 7
		}
		return 2, at.AddDate(0, 0, days).Format(time.DateOnly)
	}
	return 0, ""
}

func monday(at time.Time) time.Time {
	return at.AddDate(0, 0, -(int(at.Weekday())+6)%7)
}

func weekday(name string) (time.Weekday, bool) {
	for d := time.Sunday; d <= time.Saturday; d++ {
		if strings.EqualFold(name, d.String()) || len(name) == 3 && strings.EqualFold(name, d.String()[:3]) {
			return d, true
		}
	}
	return 0, false
}

// shift goes n units of time from at, as exactly as the unit allows.
func shift(at time.Time, n int, unit string) string {
	switch strings.TrimSuffix(unit, "s") {
	case "day":
		return at.AddDate(0, 0, n).Format(time.DateOnly)
	case "week":
		return fmt.Sprintf("week of %s", monday(at.AddDate(0, 0, 7*n)).Format(time.DateOnly))
	case "month":
		return time.Date(at.Year(), at.Month()+time.Month(n), 1, 0, 0, 0, 0, at.Location()).Format("2006-01")
	case "year":
		return strconv.Itoa(at.Year() + n)
	}
	return ""
}

func number(word string) (int, bool) {
	switch word {
	case "a", "an", "one":
		return 1, true
	case "two":
		return 2, true
	case "three":
		return 3, true
	case "four":
		return 4, true
	case "five":
		return 5, true
	case "six":
		return 6, true
	case "seven":
		return 7, true
	case "eight":
		return 8, true
	case "nine":
		return 9, true
	case "ten":
		return 10, true
	}
	if word == "" || word[0] > '9' || len(word) > 3 {
		return 0, false
	}
	n, err := strconv.Atoi(word)
	return n, err == nil && n > 0
}
