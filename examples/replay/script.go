package main

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/examples/internal/transcript"
)

// A script is a conversation in the form in which it can be run again: what the user says in each turn, and what the
// model answers step by step. The tools' answers stand beside it, by call id.
type script struct {
	session string
	system  string
	turns   []turn
	tools   []toolSpec
	results map[string]result // by call id; a call without an entry gets no answer from its tool
}

type turn struct {
	user  said
	steps []said // the model's contents; once they are used up the model says nothing more
}

type said struct {
	content *genai.Content
	at      time.Time
}

type toolSpec struct {
	name     string
	deferred bool // some call of it is answered late or never, so ADK must take it for a long-running tool
}

type result struct {
	response map[string]any
	at       time.Time
}

// newScript turns a recorded conversation into a script. Neighbouring messages of one role become one content, a
// conversation that begins with the model gets a first "Hello.", and call ids become unique.
func newScript(c transcript.Conversation) script {
	s := script{session: c.Session, system: c.System, results: map[string]result{}}
	blocks := merge(withTimes(c.Messages))
	if len(blocks) > 0 && blocks[0].content.Role == genai.RoleModel {
		hello := said{genai.NewContentFromText("Hello.", genai.RoleUser), blocks[0].at}
		blocks = slices.Insert(blocks, 0, hello)
	}
	ids := newCallIDs()
	deferred := map[string]bool{} // by tool name
	var asked []*genai.FunctionCall
	for _, b := range blocks {
		if b.content.Role == genai.RoleModel {
			asked = nil
			for _, p := range b.content.Parts {
				if p.FunctionCall == nil {
					continue
				}
				ids.call(p.FunctionCall)
				asked = append(asked, p.FunctionCall)
				if !slices.ContainsFunc(s.tools, func(t toolSpec) bool { return t.name == p.FunctionCall.Name }) {
					s.tools = append(s.tools, toolSpec{name: p.FunctionCall.Name})
				}
			}
			last := &s.turns[len(s.turns)-1]
			last.steps = append(last.steps, b)
			continue
		}
		// Responses to what was just asked come from the tools; everything else is the user's next turn.
		rest := &genai.Content{Role: genai.RoleUser}
		for _, p := range b.content.Parts {
			r := p.FunctionResponse
			if r == nil {
				rest.Parts = append(rest.Parts, p)
				continue
			}
			if !ids.response(r) {
				continue // no call waits for it: ADK would refuse the whole session
			}
			isAsked := slices.ContainsFunc(asked, func(f *genai.FunctionCall) bool { return f.ID == r.ID })
			if isAsked {
				s.results[r.ID] = result{r.Response, b.at}
			} else {
				rest.Parts = append(rest.Parts, p)
			}
		}
		markDeferred(asked, s.results, deferred)
		asked = nil
		if len(rest.Parts) > 0 || len(s.turns) == 0 {
			s.turns = append(s.turns, turn{user: said{rest, b.at}})
		}
	}
	markDeferred(asked, s.results, deferred)
	for i := range s.tools {
		s.tools[i].deferred = deferred[s.tools[i].name]
	}
	return s
}

func markDeferred(asked []*genai.FunctionCall, results map[string]result, deferred map[string]bool) {
	for _, call := range asked {
		if _, answered := results[call.ID]; !answered {
			deferred[call.Name] = true
		}
	}
}

// withTimes gives every message a time: ten seconds after its predecessor where the transcript names none.
func withTimes(messages []transcript.Message) []transcript.Message {
	timed := slices.Clone(messages)
	at := time.Date(2024, 1, 1, 9, 0, 0, 0, time.UTC)
	for i := range timed {
		if timed[i].Time.IsZero() {
			timed[i].Time = at.Add(10 * time.Second)
		}
		at = timed[i].Time
	}
	return timed
}

// merge joins neighbouring messages of one role, on copies: the call ids in them will be rewritten.
func merge(messages []transcript.Message) []said {
	var blocks []said
	for _, m := range messages {
		parts := make([]*genai.Part, len(m.Content.Parts))
		for i, p := range m.Content.Parts {
			parts[i] = copyPart(p, m.Session)
		}
		if n := len(blocks); n > 0 && blocks[n-1].content.Role == m.Content.Role {
			blocks[n-1].content.Parts = append(blocks[n-1].content.Parts, parts...)
			continue
		}
		blocks = append(blocks, said{&genai.Content{Role: m.Content.Role, Parts: parts}, m.Time})
	}
	return blocks
}

func copyPart(p *genai.Part, session string) *genai.Part {
	c := *p
	if p.FunctionCall != nil {
		call := *p.FunctionCall
		call.ID = session + "/" + call.ID
		c.FunctionCall = &call
	}
	if p.FunctionResponse != nil {
		response := *p.FunctionResponse
		response.ID = session + "/" + response.ID
		c.FunctionResponse = &response
	}
	return &c
}

// callIDs numbers the calls that share a recorded id, and gives each response the id of the oldest call of that id
// that is still open.
type callIDs struct {
	seen map[string]int
	open map[string][]string // recorded id to the unique ids that wait for a response
}

func newCallIDs() callIDs {
	return callIDs{seen: map[string]int{}, open: map[string][]string{}}
}

func (c callIDs) call(f *genai.FunctionCall) {
	recorded := f.ID
	c.seen[recorded]++
	if n := c.seen[recorded]; n > 1 {
		f.ID = fmt.Sprintf("%s#%d", recorded, n)
	}
	c.open[recorded] = append(c.open[recorded], f.ID)
}

// response reports whether a call waits for it.
func (c callIDs) response(r *genai.FunctionResponse) bool {
	waiting := c.open[r.ID]
	if len(waiting) == 0 {
		return false
	}
	c.open[r.ID] = waiting[1:]
	r.ID = waiting[0]
	return true
}
