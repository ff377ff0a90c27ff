package window

import (
	"hash/maphash"
	"slices"
	"strings"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/session"
)

// continueText opens the user turn that ADK v2.2 appends to a request that would end on a model turn.
const continueText = "Continue processing previous requests as instructed."

// scanLimit is how many visible events are compared with one content before an index over all of them is built.
const scanLimit = 64

// Sources holds, for each content of a request, the indices of the events it was made of; nil where no event is known.
type Sources [][]int32

// Map finds the events behind the contents of a request. It goes from the newest to the oldest, so that of equal texts
// the newest match first. What matches no event (a task's leading content, ADK's closing "Continue processing" turn,
// whatever a callback put in) has no sources. ADK moves late responses beside their call and merges several: a
// response content's sources are found through the ids of the calls it answers.
func Map(contents []*genai.Content, events Events, view View) Sources {
	m := mapper{contents: contents, events: events, view: view, next: events.Len() - 1}
	m.sources = make(Sources, len(contents))
	m.flat = make([]int32, 0, len(contents)+8)
	first := 0
	if view.Stream.Scope != "" {
		first = 1 // a scoped agent's first content states its task and is no event of its own stream
	}
	for i := len(contents) - 1; i >= first; i-- {
		c := contents[i]
		if c == nil || len(c.Parts) == 0 || i == len(contents)-1 && isContinue(c) {
			continue
		}
		if HasResponse(c) {
			m.response(i)
			continue
		}
		if at, ok := m.find(i); ok {
			m.sources[i] = m.one(at)
		}
	}
	return m.sources
}

type mapper struct {
	contents []*genai.Content
	events   Events
	view     View
	sources  Sources
	flat     []int32 // backs the sources
	next     int     // the newest event not matched yet

	passed    []answer // responses between next and the end, newest first
	unpassed  int      // events from here on were looked at for responses; 0 means none yet
	positions map[uint64][]int32
	seed      maphash.Seed
}

type answer struct {
	id string
	at int32
}

func (m *mapper) one(at int) []int32 {
	m.flat = append(m.flat, int32(at))
	return m.flat[len(m.flat)-1 : len(m.flat) : len(m.flat)]
}

func isContinue(c *genai.Content) bool {
	return c.Role == genai.RoleUser && len(c.Parts) == 1 && c.Parts[0] != nil && strings.HasPrefix(c.Parts[0].Text, continueText)
}

// response maps a response content through the call content before it.
func (m *mapper) response(i int) {
	var calls []*genai.FunctionCall
	if i > 0 && HasCall(m.contents[i-1]) {
		if at, ok := m.peek(i - 1); ok {
			m.collect(at)
			calls = callsOf(m.events.At(at).Content)
		}
	} else {
		m.collect(0)
	}
	var found []int32
	for _, p := range m.contents[i].Parts {
		if p == nil || p.FunctionResponse == nil {
			continue
		}
		id := p.FunctionResponse.ID
		if id == "" {
			id, calls = takeCall(calls, p.FunctionResponse.Name)
		}
		for _, r := range m.passed {
			if r.id == id && id != "" { // newest first: ADK shows the last response to a call
				if !slices.Contains(found, r.at) {
					found = append(found, r.at)
				}
				break
			}
		}
	}
	slices.Sort(found)
	m.sources[i] = found
}

func callsOf(c *genai.Content) []*genai.FunctionCall {
	var calls []*genai.FunctionCall
	for _, p := range c.Parts {
		if p != nil && p.FunctionCall != nil {
			calls = append(calls, p.FunctionCall)
		}
	}
	return calls
}

// takeCall returns the id of the first call by that name whose id ADK made up, and the calls without it.
func takeCall(calls []*genai.FunctionCall, name string) (string, []*genai.FunctionCall) {
	for i, call := range calls {
		if call.Name == name && strings.HasPrefix(call.ID, ClientCallPrefix) {
			return call.ID, slices.Delete(slices.Clone(calls), i, i+1)
		}
	}
	return "", calls
}

// collect gathers the responses of all events from index from on that were not looked at before.
func (m *mapper) collect(from int) {
	end := m.unpassed
	if end == 0 {
		end = m.events.Len()
	}
	for at := end - 1; at >= from; at-- {
		e := m.events.At(at)
		if !m.view.sees(e) || !hasContent(e) || m.view.foreign(e) {
			continue
		}
		for _, p := range e.Content.Parts {
			if p != nil && p.FunctionResponse != nil {
				m.passed = append(m.passed, answer{p.FunctionResponse.ID, int32(at)})
			}
		}
	}
	m.unpassed = min(end, from)
	if m.unpassed == 0 {
		m.unpassed = -1 // everything was looked at; -1 keeps it apart from "nothing yet"
	}
}

// peek finds the event of content i without taking it.
func (m *mapper) peek(i int) (int, bool) {
	next := m.next
	at, ok := m.find(i)
	m.next = next
	return at, ok
}

// find returns the newest event not matched yet that content i shows. When that passes over events that the content
// before it shows, content i was put in by somebody else and has no event.
func (m *mapper) find(i int) (int, bool) {
	c := m.contents[i]
	compared, expected := 0, -1
	for at := m.next; at >= 0; at-- {
		e := m.events.At(at)
		if !m.view.sees(e) || m.isResponse(e) {
			continue
		}
		if end, ok := m.match(c, e, at); ok {
			if expected >= 0 && m.shows(i-1, expected) {
				return 0, false
			}
			m.next = end - 1
			return at, true
		}
		if expected < 0 {
			expected = at
		}
		if compared++; compared == scanLimit {
			return m.lookUp(i, at)
		}
	}
	return 0, false
}

func (m *mapper) shows(i, at int) bool {
	for i > 0 && HasResponse(m.contents[i]) {
		i--
	}
	if i < 0 || m.contents[i] == nil {
		return false
	}
	_, ok := m.match(m.contents[i], m.events.At(at), at)
	return ok
}

func (m *mapper) isResponse(e *session.Event) bool {
	return hasContent(e) && !m.view.foreign(e) && HasResponse(e.Content)
}

// match reports whether c shows event at, and where the run of events behind it begins: ADK joins neighbouring
// transcriptions into one text.
func (m *mapper) match(c *genai.Content, e *session.Event, at int) (int, bool) {
	if hasContent(e) {
		return at, m.view.matches(c, e)
	}
	if c.Role != transcriptionRole(e) || len(c.Parts) != 1 || c.Parts[0] == nil {
		return 0, false
	}
	rest := c.Parts[0].Text
	for ; at >= 0; at-- {
		e := m.events.At(at)
		if !m.view.sees(e) {
			continue
		}
		text := transcription(e)
		if text == "" {
			return 0, false
		}
		var ok bool
		if rest, ok = strings.CutSuffix(rest, text); !ok {
			return 0, false
		}
		if rest == "" {
			return at, true
		}
	}
	return 0, false
}

// lookUp continues a search below index before by hash, so that many contents that callbacks rewrote cost no scan each.
func (m *mapper) lookUp(i, before int) (int, bool) {
	if m.positions == nil {
		m.seed = maphash.MakeSeed()
		m.positions = make(map[uint64][]int32)
		for at := range m.events.Len() {
			if e := m.events.At(at); m.view.sees(e) && hasContent(e) && !m.isResponse(e) {
				h := m.signature(e)
				m.positions[h] = append(m.positions[h], int32(at))
			}
		}
	}
	at := m.positions[m.contentSignature(m.contents[i])]
	for j := len(at) - 1; j >= 0; j-- {
		if a := int(at[j]); a < before {
			if _, ok := m.match(m.contents[i], m.events.At(a), a); ok {
				m.next = a - 1
				return a, true
			}
		}
	}
	return 0, false
}

// signature is equal for an event and a content that shows it; the match itself is checked afterwards.
func (m *mapper) signature(e *session.Event) uint64 {
	if m.view.foreign(e) {
		return maphash.String(m.seed, contextPrefix)
	}
	return m.contentSignature(e.Content)
}

func (m *mapper) contentSignature(c *genai.Content) uint64 {
	for _, p := range c.Parts {
		switch {
		case isEmpty(p):
		case p.FunctionCall != nil:
			return maphash.String(m.seed, p.FunctionCall.Name)
		default:
			return maphash.String(m.seed, p.Text)
		}
	}
	return 0
}
