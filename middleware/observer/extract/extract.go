package extract

import (
	"container/heap"
	"strings"
	"time"

	"github.com/adkmemory/adkmemory/middleware/token"
)

// Line is something that was said, done or noted.
type Line struct {
	Label string    // printed in front, once for all lines that share it: a date and a name. One line, no line breaks
	Time  time.Time // relative dates of the text are resolved against it; zero leaves them as they are
	Text  string    // sentences to pick from
	Items []Item    // short facts to pick from, for texts of which no sentence may be quoted
	Whole bool      // Text is one sentence, whatever is in it
	Asks  bool      // what is asked and wished for matters as much as what is said
	Boost float64   // worth of each of its sentences beyond their facts: about 1 for one more fact
}

// Item is a fact to list. Items of one label and name are printed together: "name value, value".
type Item struct {
	Name  string // may be empty
	Value string
}

// Options bound a note.
type Options struct {
	MaxTokens int
	Counter   token.Counter // default [token.Estimator]

	// FactsLabel, when set, stands in front of one common list of the facts that no picked sentence holds. Otherwise each
	// label has its own list.
	FactsLabel string

	// Sentences is the share of MaxTokens that sentences may take while facts are left to list; default 0.7.
	Sentences float64
}

// Note condenses lines, which are in order, to at most MaxTokens. The result has one line a label, in order of first
// appearance: "- label: sentences [facts]", which [Parse] takes apart again. It is a function of its arguments alone, and empty only when the lines hold
// no letter and no digit or nothing fits.
func Note(lines []Line, o Options) string {
	if o.Counter == nil {
		o.Counter = token.Estimator{}
	}
	if o.Sentences <= 0 {
		o.Sentences = 0.7
	}
	s := newSelector(lines, o)
	s.budget = int(float64(o.MaxTokens) * o.Sentences)
	s.pick(s.units, func(u *unit) bool { return !u.item })
	s.budget = o.MaxTokens
	s.listFacts()
	// The parts of a text count for more than the whole: what is left over is filled again.
	text := s.render()
	for range 4 {
		slack := o.MaxTokens - o.Counter.Count(text)
		if slack <= 2 {
			break
		}
		s.budget = s.used + slack
		if !s.pick(s.units, nil) {
			break
		}
		text = s.render()
	}
	for o.Counter.Count(text) > o.MaxTokens && s.dropLast() {
		text = s.render()
	}
	return text
}

// unit is what is picked or not: a sentence, or one fact to list.
type unit struct {
	group int
	text  string
	item  bool
	name  *name // of an item
	taken bool
	cost  int
	facts []int
	bonus float64
	scale float64
	worth float64 // of all its facts, when none is covered
	spans []span  // of a sentence: where its hard facts stand
}

// name is what items of one group share.
type name struct {
	text string
	cost int
	open bool
}

type group struct {
	label string
	cost  int
	open  bool
}

type selector struct {
	o      Options
	facts  *facts
	told   []bool // facts in picked sentences and in labels
	listed []bool // facts in picked items
	groups []group
	units  []*unit
	picked []*unit
	budget int
	used   int
}

func newSelector(lines []Line, o Options) *selector {
	s := &selector{o: o}
	byLabel := make(map[string]int)
	for i := range lines {
		l := &lines[i]
		g, ok := byLabel[l.Label]
		if !ok {
			g = s.addGroup(l.Label)
			byLabel[l.Label] = g
		}
		for _, text := range split(l) {
			resolved, dates := resolveDates(text, l.Time)
			u := &unit{group: g, text: resolved}
			u.bonus, u.scale = importance(text, l.Asks)
			u.bonus += l.Boost + float64(dates)
			s.units = append(s.units, u)
		}
	}
	common := -1
	if o.FactsLabel != "" {
		common = s.addGroup(o.FactsLabel)
	}
	names := make(map[name]*name)
	for i := range lines {
		g := common
		if g < 0 {
			g = byLabel[lines[i].Label]
		}
		for _, it := range lines[i].Items {
			u := &unit{group: g, text: strings.Join(strings.Fields(Sanitise(it.Value)), " "), item: true, scale: 1}
			if it.Name != "" {
				k := name{text: it.Name, cost: g}
				if names[k] == nil {
					names[k] = &name{text: it.Name, cost: o.Counter.Count(it.Name + " ")}
				}
				u.name = names[k]
			}
			s.units = append(s.units, u)
		}
	}
	s.weigh()
	return s
}

// weigh numbers the facts of all units and drops the units without any.
func (s *selector) weigh() {
	s.facts = newFacts()
	for _, u := range s.units {
		s.facts.learnNames(u.text, u.item)
	}
	for _, g := range s.groups {
		s.facts.learn(g.label)
	}
	for _, u := range s.units {
		s.facts.learn(u.text)
	}
	s.facts.weigh()
	s.told, s.listed = make([]bool, len(s.facts.weight)), make([]bool, len(s.facts.weight))
	for _, g := range s.groups { // names in labels are worth nothing more
		ids, _ := s.facts.of(g.label)
		for _, f := range ids {
			s.told[f] = true
		}
	}
	kept := s.units[:0]
	for _, u := range s.units {
		u.facts, u.spans = s.facts.of(u.text)
		if s.measure(u) {
			kept = append(kept, u)
		}
	}
	s.units = kept
}

// measure sets a unit's worth and cost, and reports whether it is worth anything.
func (s *selector) measure(u *unit) bool {
	for _, f := range u.facts {
		u.worth += s.facts.weight[f]
	}
	u.cost = s.o.Counter.Count(u.text + "; ")
	return u.worth > 0
}

func (s *selector) addGroup(label string) int {
	s.groups = append(s.groups, group{label: label, cost: s.o.Counter.Count("- " + label + ":\n")})
	return len(s.groups) - 1
}

// minGain keeps small talk out: a sentence whose new facts and importance weigh less is not worth its tokens.
const minGain = 0.5

// gain is what a unit adds now. Its bonus shrinks with what was told already, so that a repetition adds nothing. That a
// fact is listed does not lessen a sentence, which says more about it.
func (s *selector) gain(u *unit) float64 {
	fresh := 0.0
	for _, f := range u.facts {
		if !s.told[f] && (!u.item || !s.listed[f]) {
			fresh += s.facts.weight[f]
		}
	}
	return (fresh + u.bonus*fresh/u.worth) * u.scale
}

func (s *selector) costOf(u *unit) int {
	cost := u.cost
	if !s.groups[u.group].open {
		cost += s.groups[u.group].cost
	}
	if u.name != nil && !u.name.open {
		cost += u.name.cost
	}
	return cost
}

// scoreOf is gain for cost. A sentence is taken to cost a little more than it does: very short ones say little.
func (s *selector) scoreOf(u *unit) float64 {
	cost := s.costOf(u) + 1
	if !u.item {
		cost += 5
	}
	return s.gain(u) / float64(cost)
}

// pick takes units by gain for cost until the budget is spent. Gains only fall while units are taken, so a unit that
// is still best after its score was renewed is best of all. It reports whether it took any.
func (s *selector) pick(from []*unit, allowed func(*unit) bool) bool {
	queue := make(queue, 0, len(from))
	for i, u := range from {
		if u.taken || allowed != nil && !allowed(u) {
			continue
		}
		queue = append(queue, entry{u, s.scoreOf(u), i})
	}
	heap.Init(&queue)
	took := false
	for len(queue) > 0 {
		top := &queue[0]
		if now := s.scoreOf(top.unit); now < top.score {
			top.score = now
			heap.Fix(&queue, 0)
			continue
		}
		u := top.unit
		heap.Pop(&queue)
		if s.used+s.costOf(u) > s.budget || s.gain(u) < minGain && len(s.picked) > 0 {
			continue
		}
		s.take(u)
		took = true
	}
	return took
}

func (s *selector) take(u *unit) {
	s.used += s.costOf(u)
	u.taken = true
	s.picked = append(s.picked, u)
	into := s.told
	if u.item {
		into = s.listed
	}
	for _, f := range u.facts {
		into[f] = true
	}
	s.groups[u.group].open = true
	if u.name != nil {
		u.name.open = true
	}
}

// listFacts takes facts of sentences that were not picked, as short items.
func (s *selector) listFacts() {
	for _, u := range s.units {
		if u.taken || u.item {
			continue
		}
		for _, sp := range u.spans {
			if sp.start > 0 && u.text[sp.start-1] == '(' && isDate(u.text[sp.start:sp.end]) {
				continue // says when something was that is not told
			}
			item := &unit{group: u.group, text: u.text[sp.start:sp.end], item: true, scale: 1, facts: sp.facts}
			if s.o.FactsLabel != "" {
				item.group = len(s.groups) - 1
			}
			if s.measure(item) {
				s.units = append(s.units, item)
			}
		}
	}
	s.pick(s.units, func(u *unit) bool { return u.item })
}

func (s *selector) dropLast() bool {
	if len(s.picked) <= 1 {
		return false
	}
	last := len(s.picked) - 1
	s.picked[last].taken = false
	s.picked = s.picked[:last]
	return true
}

type entry struct {
	unit  *unit
	score float64
	order int
}

type queue []entry

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if q[i].score != q[j].score {
		return q[i].score > q[j].score
	}
	return q[i].order < q[j].order
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(entry)) }
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
