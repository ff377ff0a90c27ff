package window

import (
	"google.golang.org/genai"
)

// refill is the share of the budget, in percent, that the tail keeps when the cut moves. The rest is room to grow, so
// that the prompt's prefix stays the same until the next move.
const refill = 75

// Cut is where the tail of a request begins, kept between the calls of one agent. The zero value cuts nothing.
type Cut struct {
	EventID string   // the first event of the tail; "" while nothing was ever cut
	At      int      // where it was last seen
	Kept    []string // older events (calls of recent tool outputs) that stay until the cut moves
}

// Request is what [Select] decides on.
type Request struct {
	Contents []*genai.Content
	Sources  Sources
	Events   Events
	Observed func(event int) bool  // whether a note covers the event
	Tokens   func(content int) int // of one content; asked at most once each
	Budget   int                   // tokens; the tail stays within it
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
	TailStart  int              // the oldest event of the tail: from it on everything the agent may see is kept
	Over       bool             // un-observed contents pass Hard; nothing was dropped for that yet
	Forced     int              // un-observed contents dropped for Hard
	RawLeftOut int              // tool outputs among the newest that the budget had no room for
}

// Select keeps every content with an un-observed source and every pinned one (no known source, the current user
// message, the last call and response, a call that still waits for a response), and of the observed rest the newest
// that fit the budget. The tail begins at a user text or at a call and moves only when it outgrows the budget. A call
// and its response stay or go together; what is kept starts with a user text whenever the request has one before it.
func Select(r Request, cut Cut) Selection {
	s := selector{Request: r, flags: make([]flag, len(r.Contents)), tokens: make([]int32, len(r.Contents))}
	s.classify()
	start := s.place(s.start(&cut), &cut)
	keep := make([]bool, len(r.Contents))
	for i, f := range s.flags {
		keep[i] = f&summary == 0 && (f&(pinned|fresh|recent) != 0 || i >= start)
	}
	s.pair(keep)
	sel := Selection{Cut: cut, RawLeftOut: s.rawLeftOut, TailStart: s.Events.Len()}
	for i := start; i < len(r.Contents); i++ {
		if at := s.position(i); at >= 0 {
			sel.TailStart = min(sel.TailStart, at)
		}
	}
	total := s.total(keep)
	if total > r.Hard {
		if r.Force {
			total, sel.Forced = s.force(keep, total)
		} else {
			sel.Over = s.hasFresh(keep)
		}
	}
	if a := s.anchor(keep); a >= 0 {
		keep[a] = true
		total += s.count(a)
	}
	sel.Kept, sel.Tokens = keep, total
	sel.Contents = s.collect(keep)
	return sel
}

type flag uint8

const (
	pinned   flag = 1 << iota // stays whatever happens
	fresh                     // has a source that no note covers
	recent                    // one of the newest tool outputs
	response                  // answers the call before it
	call
	userText
	summary // stands for messages whose notes the prompt shows
)

type selector struct {
	Request
	flags      []flag
	tokens     []int32 // 0 is not counted yet
	rawLeftOut int
}

func (s *selector) count(i int) int {
	if s.tokens[i] == 0 {
		s.tokens[i] = int32(max(1, s.Tokens(i)))
	}
	return int(s.tokens[i])
}

// position is the index of the oldest event behind a content, for a response that of its call; -1 where none is known.
func (s *selector) position(i int) int {
	if s.flags[i]&response != 0 && i > 0 && len(s.Sources[i-1]) > 0 {
		i--
	}
	if len(s.Sources[i]) == 0 {
		return -1
	}
	return int(s.Sources[i][0])
}

func (s *selector) classify() {
	current := -1 // the newest user message
	for i, c := range s.Contents {
		f := s.kind(c)
		if len(s.Sources[i]) == 0 {
			f |= pinned
		}
		summaries := 0
		for _, at := range s.Sources[i] {
			e := s.Events.At(int(at))
			if IsSummary(e) {
				summaries++
				continue
			}
			if !s.Observed(int(at)) {
				f |= fresh
			}
		}
		if summaries > 0 && summaries == len(s.Sources[i]) {
			f |= summary
		} else if f&userText != 0 && s.byUser(i) {
			current = i
		}
		if f&response != 0 && i > 0 && s.flags[i-1]&call != 0 {
			if parts(s.Contents[i-1], isCall) > parts(c, isResponse) {
				f |= pinned // something it called still runs
			}
		} else {
			f &^= response
		}
		if i > 0 && s.flags[i-1]&call != 0 && f&response == 0 {
			s.flags[i-1] |= pinned // nothing answered yet
		}
		s.flags[i] = f
	}
	if current >= 0 {
		s.flags[current] |= pinned
	}
	for i := len(s.flags) - 1; i >= 0; i-- {
		known := len(s.Sources[i]) > 0
		s.flags[i] |= pinned
		if known {
			break
		}
	}
	if n := len(s.flags); n > 0 && s.flags[n-1]&call != 0 {
		s.flags[n-1] |= pinned
	}
}

// byUser reports whether a user wrote the content, as far as can be told.
func (s *selector) byUser(i int) bool {
	if len(s.Sources[i]) == 0 {
		return !isContinue(s.Contents[i])
	}
	return s.Events.At(int(s.Sources[i][0])).Author == genai.RoleUser
}

func (s *selector) kind(c *genai.Content) flag {
	switch {
	case HasResponse(c):
		return response
	case HasCall(c):
		return call
	case c != nil && c.Role == genai.RoleUser:
		return userText
	}
	return 0
}

func isCall(p *genai.Part) bool     { return p != nil && p.FunctionCall != nil }
func isResponse(p *genai.Part) bool { return p != nil && p.FunctionResponse != nil }

func parts(c *genai.Content, is func(*genai.Part) bool) int {
	n := 0
	for _, p := range c.Parts {
		if is(p) {
			n++
		}
	}
	return n
}

// start finds the content where the tail of the last call began, and marks what was kept before it.
func (s *selector) start(cut *Cut) int {
	if cut.EventID == "" {
		return 0
	}
	if e := s.eventAt(cut.At); e != cut.EventID {
		cut.At = -1
		for at := s.Events.Len() - 1; at >= 0; at-- {
			if s.eventAt(at) == cut.EventID {
				cut.At = at
				break
			}
		}
		if cut.At < 0 { // the event is gone: begin anew
			*cut = Cut{}
			return 0
		}
	}
	start := len(s.Contents)
	for i := len(s.Contents) - 1; i >= 0; i-- {
		at := s.position(i)
		if at >= 0 && at < cut.At {
			break
		}
		if at >= 0 {
			start = i
		}
	}
	for i := start - 1; i >= 0 && len(cut.Kept) > 0; i-- {
		if s.flags[i]&call == 0 || len(s.Sources[i]) == 0 {
			continue
		}
		for _, id := range cut.Kept {
			if s.eventAt(int(s.Sources[i][0])) == id {
				s.flags[i] |= recent
			}
		}
	}
	return start
}

func (s *selector) eventAt(at int) string {
	if at < 0 || at >= s.Events.Len() {
		return ""
	}
	if e := s.Events.At(at); e != nil {
		return e.ID
	}
	return ""
}

// place returns where the tail begins now: at start while it fits the budget, else where it fits with room to grow.
func (s *selector) place(start int, cut *Cut) int {
	used := 0
	for i := 0; i < start; i++ {
		if s.flags[i]&recent != 0 {
			used += s.count(i) + s.count(i+1)
		}
	}
	for i := len(s.Contents) - 1; i >= start && used <= s.Budget; i-- {
		if s.flags[i]&summary == 0 {
			used += s.count(i)
		}
	}
	if used <= s.Budget {
		return start
	}
	for i := range s.flags {
		s.flags[i] &^= recent
	}
	raw := s.markRecent()
	limit, used := len(s.Contents), raw
	for i := len(s.Contents) - 1; i >= start; i-- {
		if s.flags[i]&(recent|summary) == 0 && !(s.flags[i]&response != 0 && s.flags[i-1]&recent != 0) {
			used += s.count(i)
		}
		if used > s.Budget*refill/100 {
			break
		}
		limit = i
	}
	for limit < len(s.Contents) && (s.flags[limit]&(userText|call) == 0 || s.position(limit) < 0) {
		limit++
	}
	*cut = Cut{At: s.Events.Len()}
	if limit < len(s.Contents) {
		cut.At = s.position(limit)
	} else if limit = s.lastStep(); limit < len(s.Contents) {
		cut.At = s.position(limit)
	}
	cut.EventID = s.eventAt(cut.At)
	for i := 0; i < limit; i++ {
		if s.flags[i]&recent != 0 {
			cut.Kept = append(cut.Kept, s.eventAt(int(s.Sources[i][0])))
		}
	}
	return limit
}

// lastStep is the newest content with a known event, or the call that it answers.
func (s *selector) lastStep() int {
	for i := len(s.Contents) - 1; i >= 0; i-- {
		if s.position(i) >= 0 {
			if s.flags[i]&response != 0 && i > 0 {
				return i - 1
			}
			return i
		}
	}
	return len(s.Contents)
}

// markRecent marks the calls of the newest tool outputs, newest first, whole pairs or not at all, as far as the budget
// has room for them beside what must stay anyway. It returns the tokens of the marked pairs and counts what is left out.
func (s *selector) markRecent() int {
	room, used, left := s.Budget, 0, s.Raw
	for i := range s.flags {
		if s.flags[i]&(pinned|fresh) != 0 {
			room -= s.count(i)
		}
	}
	for i := len(s.Contents) - 1; i > 0 && left > 0; i-- {
		if s.flags[i]&response == 0 || len(s.Sources[i-1]) == 0 {
			continue
		}
		outputs := min(left, parts(s.Contents[i], isResponse))
		left -= outputs
		extra := 0
		for j := i - 1; j <= i; j++ {
			if s.flags[j]&(pinned|fresh) == 0 {
				extra += s.count(j)
			}
		}
		if extra > 0 && extra > room {
			s.rawLeftOut += outputs
			continue
		}
		room -= extra
		used += s.count(i) + s.count(i-1)
		s.flags[i-1] |= recent
	}
	return used
}

// pair keeps both halves where one is kept.
func (s *selector) pair(keep []bool) {
	for i := 1; i < len(keep); i++ {
		if s.flags[i]&response != 0 {
			both := keep[i] || keep[i-1]
			keep[i], keep[i-1] = both, both
		}
	}
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

func (s *selector) hasFresh(keep []bool) bool {
	for i, k := range keep {
		if k && s.droppable(i) && s.flags[i]&fresh != 0 {
			return true
		}
	}
	return false
}

// droppable reports whether neither the content nor the other half of its pair is pinned.
func (s *selector) droppable(i int) bool {
	f := s.flags[i]
	if f&response != 0 {
		f |= s.flags[i-1]
	}
	if i+1 < len(s.flags) && s.flags[i+1]&response != 0 {
		f |= s.flags[i+1]
	}
	return f&pinned == 0
}

// force drops the oldest contents that are not pinned, pairs whole, until the rest is within the hard limit. It counts
// those that no note covers.
func (s *selector) force(keep []bool, total int) (int, int) {
	forced := 0
	for i := 0; i < len(keep) && total > s.Hard; i++ {
		if !keep[i] || !s.droppable(i) {
			continue
		}
		last := i
		if i+1 < len(keep) && s.flags[i+1]&response != 0 {
			last = i + 1
		}
		for j := i; j <= last; j++ {
			keep[j] = false
			total -= s.count(j)
			if s.flags[j]&fresh != 0 {
				forced++
			}
		}
		i = last
	}
	return total, forced
}

// anchor is the user text to keep before a selection that would begin with anything else; -1 where none is needed.
func (s *selector) anchor(keep []bool) int {
	for i, k := range keep {
		if !k {
			continue
		}
		if s.flags[i]&userText != 0 {
			return -1
		}
		for j := i - 1; j >= 0; j-- {
			if s.flags[j]&(userText|summary) == userText {
				return j
			}
		}
		return -1
	}
	return -1
}

func (s *selector) collect(keep []bool) []*genai.Content {
	n := 0
	for _, k := range keep {
		if k {
			n++
		}
	}
	if n == len(keep) {
		return s.Contents
	}
	out := make([]*genai.Content, 0, n)
	for i, k := range keep {
		if k {
			out = append(out, s.Contents[i])
		}
	}
	return out
}
