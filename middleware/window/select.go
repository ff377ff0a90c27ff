package window

import "google.golang.org/genai"

// Cut is where the tail of a request begins, kept between the calls of one agent. The zero value cuts nothing.
type Cut struct {
	EventID string   // the first event of the tail; "" while nothing was ever cut
	At      int      // where it was last seen
	Gone    int      // how far behind At events were dropped all the same: late responses, with their calls
	Kept    []string // older events (calls of recent tool outputs) that stay until the cut moves
}

// Request is what [Select] decides on.
type Request struct {
	Contents []*genai.Content
	Sources  Sources
	Events   Events
	Observed func(event int) bool  // whether a note covers the event
	Tokens   func(content int) int // of one content; asked at most once each
	Budget   int                   // tokens of the selection; only what must stay passes it
	Hard     int                   // tokens; nothing but pinned contents passes it
	Raw      int                   // how many of the newest tool outputs stay, pairs whole, within the budget
	Force    bool                  // drop un-observed contents past Hard instead of reporting Over
}

// Selection is the outcome of [Select].
type Selection struct {
	Contents   []*genai.Content // the request's own slice when nothing is left out
	Kept       []bool           // for each content of the request
	Tokens     int              // of what is kept
	Cut        Cut              // for the next call
	TailStart  int              // from this event on everything that the request shows is kept
	Over       bool             // un-observed contents pass Hard; nothing was dropped for that yet
	Forced     int              // un-observed contents dropped for Hard
	RawLeftOut int              // tool outputs among the newest that the budget had no room for
}

// Select keeps every content with an un-observed source and every pinned one (no known source, the current user
// message, the last call and response, a call that still waits for a response), and of the observed rest the newest
// that fit the budget beside those. Of the rest the tail, which is whole, begins at a user text or at a call, and the
// calls of recent tool outputs stay before it. The tail moves only when the selection outgrows the budget, and then as
// far as to leave room to grow. A call and its responses stay or go together; what is kept starts with a user text
// whenever the request has one before it. Compaction summaries are left out, unless nothing else could stand first.
func Select(r Request, cut Cut) Selection {
	s := selector{Request: r}
	s.classify()
	tail := s.tail(&cut)
	keep := make([]bool, len(s.units))
	for i := range s.units {
		keep[i] = s.stays(i, tail)
	}
	sel := Selection{Cut: cut, RawLeftOut: s.rawLeftOut, TailStart: r.Events.Len(), Kept: make([]bool, len(r.Contents))}
	for i := tail; i < len(s.units); i++ {
		if at := s.units[i].at; at >= 0 {
			sel.TailStart = min(sel.TailStart, at)
		}
	}
	if s.total(keep)+s.lead(firstTrue(keep)) > r.Hard {
		if r.Force {
			sel.Forced = s.force(keep)
		} else {
			sel.Over = s.droppable(keep)
		}
	}
	if a := s.anchor(firstTrue(keep)); a >= 0 {
		if !keep[a] && s.units[a].is(fresh) {
			sel.Forced -= s.units[a].size()
		}
		keep[a] = true
	}
	sel.Tokens = s.total(keep)
	kept := 0
	for i, u := range s.units {
		if keep[i] {
			for j := u.first; j < u.end; j++ {
				sel.Kept[j] = true
			}
			kept += u.size()
			continue
		}
		for _, from := range r.Sources[u.first:u.end] {
			if n := len(from); n > 0 { // a late response stands beside a call from before the tail, and went with it
				s.gone = max(s.gone, int(from[n-1])+1)
			}
		}
	}
	sel.TailStart = max(sel.TailStart, s.gone)
	sel.Cut.Gone = max(0, s.gone-sel.Cut.At)
	sel.Contents = r.Contents
	if kept < len(r.Contents) {
		sel.Contents = make([]*genai.Content, 0, kept)
		for i, k := range sel.Kept {
			if k {
				sel.Contents = append(sel.Contents, r.Contents[i])
			}
		}
	}
	return sel
}

type selector struct {
	Request
	units      []unit
	rawLeftOut int
	gone       int // the event behind the newest one that was dropped, at this call or before
}

// stays reports whether a unit is kept when the tail begins at the given one.
func (s *selector) stays(i, tail int) bool {
	u := s.units[i]
	return !u.is(summary) && (u.is(pinned|fresh|recent) || i >= tail)
}

func (s *selector) total(keep []bool) int {
	total := 0
	for i, k := range keep {
		if k {
			total += s.count(i)
		}
	}
	return total
}

// droppable reports whether force could drop anything un-observed.
func (s *selector) droppable(keep []bool) bool {
	for i, k := range keep {
		if k && s.units[i].is(fresh) && !s.units[i].is(pinned) {
			return true
		}
	}
	return false
}

// force drops the oldest units that are not pinned until the rest is within the hard limit. It counts the contents that
// no note covers.
func (s *selector) force(keep []bool) int {
	forced, total, first := 0, s.total(keep), firstTrue(keep)
	for i := first; i < len(keep) && total+s.lead(first) > s.Hard; i++ {
		u := s.units[i]
		if !keep[i] || u.is(pinned) {
			continue
		}
		keep[i] = false
		total -= s.count(i)
		if u.is(fresh) {
			forced += u.size()
		}
		if i == first {
			first = firstTrue(keep)
		}
	}
	return forced
}

// anchor is the user text to keep before a selection that begins with the given unit; -1 where none is needed or there
// is none.
func (s *selector) anchor(first int) int {
	if first >= len(s.units) || first < 0 || s.units[first].is(userText) {
		return -1
	}
	sum := -1
	for i := first - 1; i >= 0; i-- {
		if u := s.units[i]; u.is(userText) {
			if !u.is(summary) {
				return i
			}
			sum = max(sum, i)
		}
	}
	return sum
}

func firstTrue(keep []bool) int {
	for i, k := range keep {
		if k {
			return i
		}
	}
	return len(keep)
}
