package window

import "slices"

// refill is the share of the budget, in percent, that is kept when the tail moves. The rest is room to grow, so that the
// prompt's prefix stays the same until the next move.
const refill = 75

// tail returns the unit where the tail begins: where it began at the last call while everything fits the budget, else
// further on. It marks the recent tool outputs that stay before it.
func (s *selector) tail(cut *Cut) int {
	start := s.begin(cut)
	keep := make([]bool, len(s.units))
	for i := range s.units {
		keep[i] = s.stays(i, start)
	}
	if s.total(keep)+s.lead(firstTrue(keep)) <= s.Budget {
		return start
	}
	for i := range s.units {
		s.units[i].flags &^= recent
	}
	used := s.markRecent()
	limit := s.Budget * refill / 100
	at := len(s.units)
	for i := len(s.units) - 1; i >= start; i-- {
		if !s.units[i].is(pinned | fresh | recent | summary) {
			if used+s.count(i) > limit {
				break
			}
			used += s.count(i)
		}
		at = i
	}
	oldest := slices.IndexFunc(s.units, func(u unit) bool { return u.is(pinned|fresh|recent) && !u.is(summary) })
	for ; at < len(s.units) && !s.mayBegin(at, oldest, limit-used); at++ {
		if !s.units[at].is(pinned | fresh | recent | summary) {
			used -= s.count(at)
		}
	}
	s.move(cut, at)
	return at
}

// begin finds the unit where the tail of the last call began, and marks what was kept before it.
func (s *selector) begin(cut *Cut) int {
	if cut.EventID == "" {
		return 0
	}
	if s.eventID(cut.At) != cut.EventID {
		cut.At = s.Events.Len() - 1
		for cut.At >= 0 && s.eventID(cut.At) != cut.EventID {
			cut.At--
		}
		if cut.At < 0 { // the event is gone: begin anew
			*cut = Cut{}
			return 0
		}
	}
	s.gone = cut.At + cut.Gone
	start := len(s.units)
	for i, u := range slices.Backward(s.units) {
		if u.at >= 0 && u.at < cut.At {
			break
		}
		if u.at >= 0 {
			start = i
		}
	}
	for i := start - 1; i >= 0 && len(cut.Kept) > 0; i-- {
		if u := s.units[i]; u.is(call) && u.at >= 0 && slices.Contains(cut.Kept, s.eventID(u.at)) {
			s.units[i].flags |= recent
		}
	}
	return start
}

// mayBegin reports whether the tail may begin at a unit: a user text, or a call whose turn's user text is kept anyway or
// has room. oldest is the first unit that stays without the tail.
func (s *selector) mayBegin(i, oldest, room int) bool {
	u := s.units[i]
	if u.at < 0 || u.is(summary) {
		return false
	}
	return u.is(userText) || u.is(call) && (oldest >= 0 && oldest < i || s.lead(i) <= room)
}

// move notes that the tail begins at unit i now, or else at the newest event that anything shows.
func (s *selector) move(cut *Cut, i int) {
	*cut = Cut{At: s.Events.Len()}
	for at := i; at < len(s.units); at++ {
		if s.units[at].at >= 0 {
			cut.At = s.units[at].at
			break
		}
	}
	if cut.At == s.Events.Len() {
		for _, u := range slices.Backward(s.units) {
			if u.at >= 0 {
				cut.At = u.at
				break
			}
		}
	}
	cut.EventID = s.eventID(cut.At)
	for _, u := range s.units[:i] {
		if u.is(recent) && u.at < cut.At {
			cut.Kept = append(cut.Kept, s.eventID(u.at))
		}
	}
}

func (s *selector) eventID(at int) string {
	if at < 0 || at >= s.Events.Len() {
		return ""
	}
	if e := s.Events.At(at); e != nil {
		return e.ID
	}
	return ""
}

// markRecent marks the calls of the newest tool outputs, newest first, whole pairs or not at all, as far as the budget
// has room for them beside what must stay anyway. It returns the tokens of both and counts what is left out.
func (s *selector) markRecent() int {
	used, oldest := 0, len(s.units)
	for i := range slices.Backward(s.units) {
		if s.units[i].is(pinned|fresh) && !s.units[i].is(summary) {
			used += s.count(i)
			oldest = i
		}
	}
	left := s.Raw
	for i := len(s.units) - 1; i >= 0 && left > 0; i-- {
		u := s.units[i]
		if !u.is(call) || u.outputs == 0 || u.at < 0 {
			continue
		}
		outputs := min(left, u.outputs)
		left -= outputs
		if u.is(pinned | fresh) {
			continue
		}
		if used+s.count(i)+s.lead(min(i, oldest)) > s.Budget {
			s.rawLeftOut += outputs
			continue
		}
		used += s.count(i)
		oldest = min(i, oldest)
		s.units[i].flags |= recent
	}
	return used + s.lead(oldest)
}

// lead is what the user text costs that has to stand before a selection that begins with unit i.
func (s *selector) lead(i int) int {
	if a := s.anchor(i); a >= 0 {
		return s.count(a)
	}
	return 0
}
