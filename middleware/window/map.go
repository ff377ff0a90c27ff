package window

import (
	"slices"
	"strings"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/session"
)

// continueText opens the user turn that ADK v2.2 appends to a request that would end on a model turn.
const continueText = "Continue processing previous requests as instructed."

// Sources holds, for each content of a request, the indices of the events it was made of, ascending; nil where no event
// is known.
type Sources [][]int32

// Map finds the events behind the contents of a request. It lists what ADK makes of the events that the view sees and
// aligns the contents with that list, in order: what stands in between (a task's leading content, ADK's closing
// "Continue processing" turn, whatever a callback put in or rewrote) has no sources, and events that ADK or a callback
// left out do no harm. ADK moves late responses beside their call and merges several of them, so a response's sources
// are found through the call before it.
//
// The cost is linear in the events, also when contents were put in at both ends or all were rewritten.
func Map(contents []*genai.Content, events Events, view View) Sources {
	m := mapper{contents: contents, events: events, view: view, sources: make(Sources, len(contents))}
	m.read()
	own := make([]int32, 0, len(contents))
	for i, c := range contents {
		if c != nil && len(c.Parts) > 0 && !HasResponse(c) && !(i == len(contents)-1 && isContinue(c)) {
			own = append(own, int32(i))
		}
	}
	m.align(own, m.expected, false)
	for i, c := range contents {
		if HasResponse(c) {
			m.sources[i] = m.responses(i)
		}
	}
	return m.sources
}

type mapper struct {
	contents []*genai.Content
	events   Events
	view     View
	sources  Sources

	visible  []int32          // events that the view sees, without responses
	expected []item           // the contents that ADK makes of them
	answers  map[string]int32 // the newest response event to each call id
}

// item is a content that ADK makes of one event, or of the run of neighbouring transcriptions that it joins.
type item struct {
	from, to int32 // in visible
}

func isContinue(c *genai.Content) bool {
	return c != nil && c.Role == genai.RoleUser && len(c.Parts) == 1 && c.Parts[0] != nil && strings.HasPrefix(c.Parts[0].Text, continueText)
}

// read lists what the view sees, as ADK's contents processor does.
func (m *mapper) read() {
	m.visible = make([]int32, 0, m.events.Len())
	m.expected = make([]item, 0, m.events.Len())
	m.answers = make(map[string]int32)
	run := "" // the role of the transcription that the last event brought
	for at := range m.events.Len() {
		e := m.events.At(at)
		if !m.view.sees(e) {
			continue
		}
		if !hasContent(e) {
			role := transcriptionRole(e)
			m.visible = append(m.visible, int32(at))
			if role == run {
				m.expected[len(m.expected)-1].to++
			} else {
				m.expect()
			}
			run = role
			continue
		}
		run = ""
		switch {
		case m.view.foreign(e):
		case HasResponse(e.Content):
			for _, p := range e.Content.Parts {
				if isResponse(p) {
					m.answers[p.FunctionResponse.ID] = int32(at)
				}
			}
			continue
		case !slices.ContainsFunc(e.Content.Parts, func(p *genai.Part) bool { return !isEmpty(p) }):
			continue // ADK leaves it out
		}
		m.visible = append(m.visible, int32(at))
		m.expect()
	}
}

// expect adds a content made of the newest visible event.
func (m *mapper) expect() {
	n := int32(len(m.visible))
	m.expected = append(m.expected, item{n - 1, n})
}

// align matches contents with expected ones in order: from the newest backward as far as they agree, then from the
// oldest on, then what is left by a longest common subsequence, once without everything that has no counterpart.
func (m *mapper) align(own []int32, expected []item, sifted bool) {
	for len(own) > 0 && len(expected) > 0 && m.match(own[len(own)-1], expected[len(expected)-1]) {
		m.take(own[len(own)-1], expected[len(expected)-1])
		own, expected = own[:len(own)-1], expected[:len(expected)-1]
	}
	for len(own) > 0 && len(expected) > 0 && m.match(own[0], expected[0]) {
		m.take(own[0], expected[0])
		own, expected = own[1:], expected[1:]
	}
	switch {
	case len(own) == 0 || len(expected) == 0:
	case !sifted:
		own, expected = m.sift(own, expected)
		m.align(own, expected, true)
	default:
		same := func(i, j int) bool { return m.match(own[i], expected[j]) }
		common(len(own), len(expected), same, func(i, j int) { m.take(own[i], expected[j]) })
	}
}

func (m *mapper) take(i int32, it item) { m.sources[i] = m.visible[it.from:it.to:it.to] }

// sift leaves out the contents and the expected ones whose signature the other side does not have.
func (m *mapper) sift(own []int32, expected []item) ([]int32, []item) {
	theirs := make(map[string]bool, len(expected))
	for _, it := range expected {
		theirs[m.expectedSignature(it)] = true
	}
	ours := make(map[string]bool, len(own))
	var keptOwn []int32
	for _, i := range own {
		if s := signature(m.contents[i]); theirs[s] {
			ours[s] = true
			keptOwn = append(keptOwn, i)
		}
	}
	var kept []item
	for _, it := range expected {
		if ours[m.expectedSignature(it)] {
			kept = append(kept, it)
		}
	}
	return keptOwn, kept
}

// expectedSignature equals the signature of every content that shows the item.
func (m *mapper) expectedSignature(it item) string {
	e := m.first(it)
	switch {
	case !hasContent(e):
		return m.transcript(it)
	case m.view.foreign(e):
		return contextPrefix
	}
	return signature(e.Content)
}

// signature is the text or the called tool's name of the first part that says something.
func signature(c *genai.Content) string {
	for _, p := range c.Parts {
		switch {
		case isEmpty(p):
		case p.FunctionCall != nil:
			return p.FunctionCall.Name
		default:
			return p.Text
		}
	}
	return ""
}

func (m *mapper) first(it item) *session.Event { return m.events.At(int(m.visible[it.from])) }

func (m *mapper) match(i int32, it item) bool {
	c, e := m.contents[i], m.first(it)
	if hasContent(e) {
		return m.view.matches(c, e)
	}
	return c.Role == transcriptionRole(e) && len(c.Parts) == 1 && c.Parts[0] != nil && c.Parts[0].Text == m.transcript(it)
}

func (m *mapper) transcript(it item) string {
	if it.to == it.from+1 {
		return transcription(m.first(it))
	}
	var b strings.Builder
	for _, at := range m.visible[it.from:it.to] {
		b.WriteString(transcription(m.events.At(int(at))))
	}
	return b.String()
}

// responses finds the events behind a response content: of the calls before it, as ADK does, or of the ids in it when
// that call's event is not known.
func (m *mapper) responses(i int) []int32 {
	var found []int32
	add := func(id string) {
		if at, ok := m.answers[id]; ok && !slices.Contains(found, at) {
			found = append(found, at)
		}
	}
	if i > 0 && HasCall(m.contents[i-1]) && len(m.sources[i-1]) > 0 {
		for _, p := range m.events.At(int(m.sources[i-1][0])).Content.Parts {
			if isCall(p) {
				add(p.FunctionCall.ID)
			}
		}
	} else {
		for _, p := range m.contents[i].Parts {
			if isResponse(p) && p.FunctionResponse.ID != "" {
				add(p.FunctionResponse.ID)
			}
		}
	}
	slices.Sort(found)
	return found
}

func isCall(p *genai.Part) bool     { return p != nil && p.FunctionCall != nil }
func isResponse(p *genai.Part) bool { return p != nil && p.FunctionResponse != nil }
