package main

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/examples/internal/transcript"
)

// generated returns the conversations that recordings seldom hold, always the same ones: a turn of 200 tool calls,
// parallel calls with equal arguments, a result of 50,000 tokens, responses that come three turns late, and a call that
// is never answered. Each has enough ordinary talk around it for notes to be written and the window to move.
func generated() []transcript.Conversation {
	return []transcript.Conversation{longTurn(), parallelCalls(), largeResult(), lateResponses(), unanswered()}
}

func longTurn() transcript.Conversation {
	w := newWriter("generated/long-turn")
	w.talk(20)
	w.user("Please check every one of the 200 containers.")
	for i := range 200 {
		w.model(w.call("check_container", map[string]any{"container": i}))
		w.user(w.result(map[string]any{"container": i, "state": "sealed", "remark": remark(i)}))
	}
	w.model("All 200 containers are sealed.")
	w.talk(20)
	return w.conversation
}

func parallelCalls() transcript.Conversation {
	w := newWriter("generated/parallel-calls")
	for i := range 15 {
		w.user(fmt.Sprintf("Roll the dice of round %d.", i))
		var calls []any
		for range 8 {
			calls = append(calls, w.call("roll", map[string]any{"sides": 6}))
		}
		w.model(append([]any{"Rolling eight dice."}, calls...)...)
		var results []any
		for k := range 8 {
			results = append(results, w.result(map[string]any{"eyes": (i*5+k*3)%6 + 1, "log": remark(i*8 + k)}))
		}
		w.user(results...)
		w.model(remark(i))
	}
	w.talk(10)
	return w.conversation
}

func largeResult() transcript.Conversation {
	const tokens, charactersPerToken = 50_000, 4
	w := newWriter("generated/large-result")
	w.talk(20)
	w.user("Read me the whole log.")
	w.model(w.call("read_log", map[string]any{"file": "port.log"}))
	var log strings.Builder
	for i := 0; log.Len() < tokens*charactersPerToken; i++ {
		log.WriteString(remark(i))
		log.WriteByte('\n')
	}
	w.user(w.result(map[string]any{"log": log.String()}))
	w.model("The log is quiet but for container 17.")
	w.talk(40)
	return w.conversation
}

func lateResponses() transcript.Conversation {
	w := newWriter("generated/late-response")
	for i := range 15 {
		w.user(fmt.Sprintf("Ask customs to approve shipment %d.", 4000+i))
		w.model(w.call("ask_customs", map[string]any{"shipment": 4000 + i}))
		w.talk(3)
		w.user(w.result(map[string]any{"shipment": 4000 + i, "approved": i%2 == 0, "remark": remark(i)}))
		w.model(fmt.Sprintf("Customs answered about shipment %d.", 4000+i))
	}
	return w.conversation
}

func unanswered() transcript.Conversation {
	w := newWriter("generated/unanswered-call")
	w.talk(5)
	w.user("Ask the harbour master for a berth.")
	w.model(w.call("ask_harbour_master", map[string]any{"berth": 7}))
	w.open = nil // and there will never be an answer
	for i := range 20 {
		w.talk(2)
		w.user("Ask him for another one.")
		w.model("I will.", w.call("ask_harbour_master", map[string]any{"berth": i}), w.call("note", map[string]any{"berth": i}))
		w.user(w.result(map[string]any{"free": i%3 == 0}), w.result(map[string]any{"noted": remark(i)}))
		w.model("He answered at once.")
	}
	return w.conversation
}

// writer writes a conversation, a message every half minute.
type writer struct {
	conversation transcript.Conversation
	at           time.Time
	said         int
	calls        int
	open         []*genai.FunctionCall
}

func newWriter(session string) *writer {
	return &writer{
		conversation: transcript.Conversation{
			Session: session,
			System:  "You are the clerk of a container port. Answer in one or two sentences.",
		},
		at: time.Date(2024, 3, 4, 8, 0, 0, 0, time.UTC),
	}
}

// call makes a call that waits for its result.
func (w *writer) call(name string, args map[string]any) *genai.Part {
	w.calls++
	p := &genai.Part{FunctionCall: &genai.FunctionCall{ID: fmt.Sprintf("call-%d", w.calls), Name: name, Args: args}}
	w.open = append(w.open, p.FunctionCall)
	return p
}

// result answers the oldest call that waits.
func (w *writer) result(response map[string]any) *genai.Part {
	call := w.open[0]
	w.open = w.open[1:]
	return &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: call.ID, Name: call.Name, Response: response}}
}

func (w *writer) user(parts ...any)  { w.say(genai.RoleUser, "user", parts) }
func (w *writer) model(parts ...any) { w.say(genai.RoleModel, "clerk", parts) }

// say adds a message of texts and parts.
func (w *writer) say(role, author string, parts []any) {
	content := &genai.Content{Role: role}
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			content.Parts = append(content.Parts, &genai.Part{Text: p})
		case *genai.Part:
			content.Parts = append(content.Parts, p)
		}
	}
	w.conversation.Messages = append(w.conversation.Messages, transcript.Message{
		Session: w.conversation.Session, ID: fmt.Sprint(w.said), Time: w.at, Author: author, Content: content,
	})
	w.said++
	w.at = w.at.Add(30 * time.Second)
}

// talk adds ordinary turns.
func (w *writer) talk(turns int) {
	for range turns {
		w.user("What is new? " + remark(w.said))
		w.model(remark(w.said + 1000))
	}
}

// remark is a sentence or two of about 50 tokens; each number gives another one, with facts worth keeping.
func remark(i int) string {
	ships := []string{"Aurora", "Bergen", "Cassiopeia", "Dunkirk", "Esperanza", "Fjordland", "Galatea"}
	people := []string{"Okafor", "Lindqvist", "Moreau", "Tanaka", "Petrov", "Alvarez", "Haddad", "Novak", "Silva"}
	goods := []string{"coffee", "turbine blades", "oranges", "paper", "salt"}
	return fmt.Sprintf("The ship %s brought %d tons of %s for Mr %s, to be collected until 2024-%02d-%02d at berth %d. "+
		"We decided to store it in hall %d because the crane on the quay was being repaired.",
		ships[i%len(ships)], 10+i*7%900, goods[i%len(goods)], people[i%len(people)], 3+i%9, 1+i%28, 1+i%40, 1+i%13)
}
