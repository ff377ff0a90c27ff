package main

import (
	"slices"

	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool/toolconfirmation"
	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/backends"
)

// viewer is the agent that makes a call and the stream it runs in.
type viewer struct {
	agent  string
	stream backends.Stream
}

// sees repeats ADK's rules for the events that an agent is shown (internal/llminternal, buildContentsDefault).
func (v viewer) sees(e *session.Event) bool {
	if e.Content == nil || e.Content.Role == "" || len(e.Content.Parts) == 0 {
		return false
	}
	for _, p := range e.Content.Parts {
		if p.FunctionCall != nil && hidden(p.FunctionCall.Name) ||
			p.FunctionResponse != nil && hidden(p.FunctionResponse.Name) {
			return false
		}
	}
	return backends.Stream{Branch: e.Branch, Scope: e.IsolationScope}.VisibleFrom(v.stream)
}

func hidden(tool string) bool {
	return tool == "adk_request_credential" || tool == toolconfirmation.FunctionCallName
}

func (v viewer) isForeign(e *session.Event) bool { return e.Author != v.agent && e.Author != "user" }

// align finds the sent contents in the whole history: for each its index there, or -1 for one that was added. What was
// sent is the history with some contents left out, so both are walked backward side by side.
func align(full, sent prompt) []int {
	at := make([]int, len(sent.keys))
	next := len(full.keys)
	for i := len(sent.keys) - 1; i >= 0; i-- {
		at[i] = -1
		for j := next - 1; j >= 0; j-- {
			if full.keys[j] == sent.keys[i] {
				at[i], next = j, j
				break
			}
		}
	}
	return at
}

// place finds the events in the whole history: for each index of a content the events that it shows. An event that ADK
// does not show, such as the interim answer of a long-running tool that was replaced later, is nowhere.
func place(full prompt, v viewer, events []*session.Event, keys *fingerprints) [][]*session.Event {
	at := make([][]*session.Event, len(full.contents))
	calls := map[string]int{} // call id to the index of the content that asks
	next := 0
	for _, e := range events {
		if !v.sees(e) {
			continue
		}
		foreign := v.isForeign(e)
		parts := keys.event(e, foreign)
		if responses := responseIDs(e); len(responses) > 0 && !foreign {
			// ADK puts a response, however late it came, right after its call, merged with the others of that call.
			asked, ok := calls[responses[0]]
			if ok && asked+1 < len(full.contents) && containsAll(keys.parts(full.contents[asked+1].Parts), parts) {
				at[asked+1] = append(at[asked+1], e)
			}
			continue
		}
		role := e.Content.Role
		if foreign {
			role = genai.RoleUser
		}
		key := keys.join(role, parts)
		for j := next; j < len(full.keys); j++ {
			if full.keys[j] != key {
				continue
			}
			at[j] = append(at[j], e)
			next = j + 1
			if !foreign {
				for _, p := range e.Content.Parts {
					if p.FunctionCall != nil {
						calls[p.FunctionCall.ID] = j
					}
				}
			}
			break
		}
	}
	return at
}

func responseIDs(e *session.Event) []string {
	var ids []string
	for _, p := range e.Content.Parts {
		if p.FunctionResponse != nil {
			ids = append(ids, p.FunctionResponse.ID)
		}
	}
	return ids
}

func containsAll(all, some []uint64) bool {
	return !slices.ContainsFunc(some, func(key uint64) bool { return !slices.Contains(all, key) })
}

type covered struct {
	uncovered int // messages neither sent nor in a note
	leftOut   int // notes that would have covered a message but were not in the prompt
}

// coverage asks of every content that ADK built and that was not sent whether a note stands for it. A content that
// shows no event at all must be sent.
func coverage(c *call, sent prompt, kept []int, book *noteBook) covered {
	isKept := make([]bool, len(c.full.contents))
	for _, j := range kept {
		if j >= 0 {
			isKept[j] = true
		}
	}
	if !slices.Contains(isKept, false) {
		return covered{}
	}
	// Nearly always the active notes are what the prompt shows. Notes that were condensed meanwhile may stand there too:
	// a layout that keeps the prefix stable renews its notes rarely. To look for all of them takes longer.
	result := c.check(isKept, book, book.shownIn(c, sent, kept, false))
	if result != (covered{}) {
		result = c.check(isKept, book, book.shownIn(c, sent, kept, true))
	}
	return result
}

// check is coverage for the notes that the prompt shows.
func (c *call) check(isKept []bool, book *noteBook, shown map[string]bool) covered {
	line := newTimeline(c.events)
	noted := map[string]bool{}
	leftOut := map[string]map[string]bool{} // by note, the events it covers
	for id, note := range book.notes {
		switch {
		case shown[id]:
			book.expand(note, func(n backends.Note) { line.mark(n, noted) })
		case c.active[id]:
			leftOut[id] = map[string]bool{}
			book.expand(note, func(n backends.Note) { line.mark(n, leftOut[id]) })
		}
	}
	var result covered
	needed := map[string]bool{}
	for j, events := range place(c.full, c.view, c.events, c.keys) {
		if isKept[j] {
			continue
		}
		if len(events) == 0 {
			result.uncovered++
		}
		for _, e := range events {
			if noted[e.ID] {
				continue
			}
			found := false
			for id, in := range leftOut {
				if in[e.ID] {
					found = true
					needed[id] = true
				}
			}
			if !found {
				result.uncovered++
			}
		}
	}
	result.leftOut = len(needed)
	return result
}

// brokenPairs counts the calls without their response in the next content, and the responses without their call in the
// one before, that are whole in the history: a call that was never answered is nobody's fault.
func brokenPairs(full, sent prompt, kept []int) int {
	broken := 0
	for i, content := range sent.contents {
		here := loose(sent.contents, i)
		if here > 0 && kept[i] >= 0 && full.contents[kept[i]].Role == content.Role {
			here -= min(here, loose(full.contents, kept[i]))
		}
		broken += here
	}
	return broken
}

// loose counts the calls and responses of one content that have no counterpart beside it.
func loose(contents []*genai.Content, i int) int {
	n := 0
	for _, p := range contents[i].Parts {
		if p.FunctionCall != nil && !hasPart(contents, i+1, func(q *genai.Part) bool {
			r := q.FunctionResponse
			return r != nil && r.ID == p.FunctionCall.ID && r.Name == p.FunctionCall.Name
		}) {
			n++
		}
		if p.FunctionResponse != nil && !hasPart(contents, i-1, func(q *genai.Part) bool {
			f := q.FunctionCall
			return f != nil && f.ID == p.FunctionResponse.ID && f.Name == p.FunctionResponse.Name
		}) {
			n++
		}
	}
	return n
}

func hasPart(contents []*genai.Content, i int, is func(*genai.Part) bool) bool {
	return i >= 0 && i < len(contents) && contents[i] != nil && slices.ContainsFunc(contents[i].Parts, is)
}
