package window

import (
	"slices"

	"google.golang.org/genai"
)

// unit is what stays or goes as a whole: a call with the responses right behind it, or any other content alone.
type unit struct {
	first, end int // contents
	flags      flag
	at         int // the oldest event behind the first content; -1 where none is known
	outputs    int // tool outputs in it
	tokens     int // 0 is not counted yet
}

type flag uint8

const (
	pinned flag = 1 << iota // stays whatever happens
	fresh                   // has a source that no note covers
	recent                  // one of the newest tool outputs
	call
	userText
	summary // stands for messages whose notes the prompt shows
)

// is reports whether the unit has any of the flags.
func (u unit) is(f flag) bool { return u.flags&f != 0 }

func (u unit) size() int { return u.end - u.first }

func (s *selector) count(i int) int {
	u := &s.units[i]
	if u.tokens == 0 {
		for j := u.first; j < u.end; j++ {
			u.tokens += max(1, s.Tokens(j))
		}
	}
	return u.tokens
}

// classify divides the contents into units and finds out what each is.
func (s *selector) classify() {
	s.units = make([]unit, 0, len(s.Contents))
	current := -1 // the unit of the newest user message
	for i := 0; i < len(s.Contents); {
		u := unit{first: i, end: i + 1, at: -1, flags: s.kind(i)}
		if u.is(call) {
			for u.end < len(s.Contents) && HasResponse(s.Contents[u.end]) {
				u.outputs += count(s.Contents[u.end], isResponse)
				u.end++
			}
			if u.outputs < count(s.Contents[i], isCall) {
				u.flags |= pinned // something it called still runs
			}
		}
		if len(s.Sources[i]) > 0 {
			u.at = int(s.Sources[i][0])
		}
		all := summary
		for j := i; j < u.end; j++ {
			f := s.origin(j)
			u.flags |= f &^ summary
			all &= f
			if s.byUser(j) {
				current = len(s.units)
			}
		}
		if u.is(userText) {
			u.flags |= all
		}
		s.units = append(s.units, u)
		i = u.end
	}
	if current >= 0 {
		s.units[current].flags |= pinned
	}
	// The last step is what the model has to react to.
	for i := range slices.Backward(s.units) {
		s.units[i].flags |= pinned
		if s.units[i].at >= 0 {
			s.units[i].flags &^= summary
			break
		}
	}
}

func (s *selector) kind(i int) flag {
	c := s.Contents[i]
	switch {
	case HasResponse(c):
		return pinned // it answers no call before it: whoever put it there knows why
	case HasCall(c):
		return call
	case c != nil && c.Role == genai.RoleUser:
		return userText
	}
	return 0
}

// origin tells what the events behind content i make of it.
func (s *selector) origin(i int) flag {
	if len(s.Sources[i]) == 0 {
		return pinned
	}
	f := summary
	for _, at := range s.Sources[i] {
		if IsSummary(s.Events.At(int(at))) {
			continue
		}
		f &^= summary
		if !s.Observed(int(at)) {
			f |= fresh
		}
	}
	return f
}

// byUser reports whether content i is something that a user said, as far as can be told.
func (s *selector) byUser(i int) bool {
	c := s.Contents[i]
	if c == nil || c.Role != genai.RoleUser || HasResponse(c) && count(c, isText) == 0 {
		return false
	}
	if len(s.Sources[i]) == 0 {
		return !isContinue(c)
	}
	e := s.Events.At(int(s.Sources[i][0]))
	return e.Author == genai.RoleUser && !IsSummary(e)
}

func isText(p *genai.Part) bool { return p != nil && p.Text != "" }

func count(c *genai.Content, is func(*genai.Part) bool) int {
	n := 0
	for _, p := range c.Parts {
		if is(p) {
			n++
		}
	}
	return n
}
