package adksession

import (
	"fmt"

	"google.golang.org/adk/v2/session"
)

// SummaryKey marks a summary in its event's custom metadata. The value is the number of events it replaced.
const SummaryKey = "adkmemory_summary"

func isSummary(e *session.Event) bool { return e.CustomMetadata[SummaryKey] != nil }

// selection is the work of [choose].
type selection struct {
	items  []item
	units  []string        // the unit of each item
	kept   map[string]bool // units that stay as a whole
	linked map[string]map[string]bool
}

// choose returns for each item whether a compaction up to the given index deletes it, and how many messages it deletes.
// What stays and goes as a whole is an invocation, or a single event that has none. An invocation stays when
//
//   - one of its events lies past upTo, or it is one of the newest keepTurns,
//   - it has a function call without a response, a call of a long-running tool, a confirmation or a requested input that
//     the user has not answered yet: ADK fails the turn in which the answer comes when the call is gone,
//   - a call of its own is answered by an invocation that stays, or the other way around.
//
// Summaries always go. With upTo 0 nothing else does.
func choose(items []item, upTo, keepTurns int) (gone []bool, messages int) {
	s := &selection{
		items: items, units: make([]string, len(items)), kept: make(map[string]bool), linked: make(map[string]map[string]bool),
	}
	for i, it := range items {
		if s.units[i] = it.event.InvocationID; s.units[i] == "" {
			s.units[i] = fmt.Sprint("\x00", i)
		}
	}
	s.keepTail(upTo, keepTurns)
	s.keepOpen()
	s.keepLinked()

	gone = make([]bool, len(items))
	for i, it := range items {
		if isSummary(it.event) {
			gone[i] = true
		} else if upTo > 0 && !s.kept[s.units[i]] {
			gone[i] = true
			messages++
		}
	}
	return gone, messages
}

func (s *selection) keepTail(upTo, keepTurns int) {
	turns := make(map[string]bool)
	for i := len(s.items) - 1; i >= 0; i-- {
		unit := s.units[i]
		if isSummary(s.items[i].event) {
			continue
		}
		if len(turns) < keepTurns {
			turns[unit] = true
		}
		if i > upTo || turns[unit] {
			s.kept[unit] = true
		}
	}
}

// call is a function call and what has answered it.
type call struct {
	unit    string
	waiting bool // for an answer by the user: a long-running tool, a confirmation, an input
	open    bool
}

// keepOpen keeps units with unanswered calls, and links those that a call and its responses connect.
func (s *selection) keepOpen() {
	calls := make(map[string]*call)
	for i, it := range s.items {
		unit := s.units[i]
		for _, c := range functionCalls(it.event) {
			calls[callKey(unit, c.id, c.name)] = &call{unit: unit, waiting: c.waiting, open: true}
		}
		for _, r := range functionResponses(it.event) {
			c := calls[callKey(unit, r.id, r.name)]
			if c == nil {
				continue
			}
			s.link(c.unit, unit)
			if !c.waiting || it.event.Author == "user" {
				c.open = false
			}
		}
		for id := range it.event.Actions.RequestedToolConfirmations { // the response that asks is not the answer
			if c := calls[callKey(unit, id, "")]; c != nil {
				c.open = true
			}
		}
	}
	for _, c := range calls {
		if c.open {
			s.kept[c.unit] = true
		}
	}
}

func (s *selection) link(a, b string) {
	if a == b {
		return
	}
	for _, pair := range [][2]string{{a, b}, {b, a}} {
		if s.linked[pair[0]] == nil {
			s.linked[pair[0]] = make(map[string]bool)
		}
		s.linked[pair[0]][pair[1]] = true
	}
}

// keepLinked keeps all units that are linked to a kept one, directly or through others.
func (s *selection) keepLinked() {
	var reach func(unit string)
	reach = func(unit string) {
		for other := range s.linked[unit] {
			if !s.kept[other] {
				s.kept[other] = true
				reach(other)
			}
		}
	}
	for unit := range s.linked {
		if s.kept[unit] {
			reach(unit)
		}
	}
}

// callKey identifies a call: by its id, or within its unit by its name where a model gives no ids.
func callKey(unit, id, name string) string {
	if id != "" {
		return id
	}
	return unit + "\x00" + name
}

type callRef struct {
	id, name string
	waiting  bool
}

// functionCalls lists the calls of an event, and an input that it requests as a call of its own.
func functionCalls(e *session.Event) []callRef {
	waiting := make(map[string]bool, len(e.LongRunningToolIDs))
	for _, id := range e.LongRunningToolIDs {
		waiting[id] = true
	}
	var refs []callRef
	if e.RequestedInput != nil {
		refs = append(refs, callRef{id: e.RequestedInput.InterruptID, name: "requested input", waiting: true})
		waiting[e.RequestedInput.InterruptID] = true
	}
	if e.Content == nil {
		return refs
	}
	for _, p := range e.Content.Parts {
		if p != nil && p.FunctionCall != nil {
			c := p.FunctionCall
			refs = append(refs, callRef{id: c.ID, name: c.Name, waiting: waiting[c.ID]})
		}
	}
	return refs
}

func functionResponses(e *session.Event) []callRef {
	if e.Content == nil {
		return nil
	}
	var refs []callRef
	for _, p := range e.Content.Parts {
		if p != nil && p.FunctionResponse != nil {
			refs = append(refs, callRef{id: p.FunctionResponse.ID, name: p.FunctionResponse.Name})
		}
	}
	return refs
}
