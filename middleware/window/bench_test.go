package window_test

import (
	"fmt"
	"testing"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/middleware/window"
)

// history is a long session and the request that ADK builds from it: texts, calls and responses in turn.
func history(n int) (eventList, []*genai.Content) {
	events, contents := make(eventList, n), make([]*genai.Content, n)
	for i := range events {
		e := &session.Event{ID: fmt.Sprint("e", i), Author: "agent"}
		c := genai.NewContentFromText(fmt.Sprintf("message %d: %0200d", i, i), genai.RoleModel)
		switch i % 4 {
		case 0:
			e.Author, c.Role = genai.RoleUser, genai.RoleUser
		case 1:
			c.Parts = []*genai.Part{{FunctionCall: &genai.FunctionCall{ID: fmt.Sprint("adk-", i), Name: "look"}}}
		case 2:
			c = &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{ID: fmt.Sprint("adk-", i-1), Name: "look"}}}}
		}
		e.LLMResponse = model.LLMResponse{Content: c}
		events[i] = e
		shown := *c
		shown.Parts = []*genai.Part{{Text: c.Parts[0].Text}}
		if f := c.Parts[0].FunctionCall; f != nil {
			shown.Parts[0].FunctionCall = &genai.FunctionCall{Name: f.Name}
		}
		if f := c.Parts[0].FunctionResponse; f != nil {
			shown.Parts[0].FunctionResponse = &genai.FunctionResponse{Name: f.Name}
		}
		contents[i] = &shown
	}
	return events, contents
}

func BenchmarkMap(b *testing.B) {
	events, contents := history(20_000)
	rogue := func() *genai.Content { return genai.NewContentFromText("put in", genai.RoleUser) }
	rewritten := make([]*genai.Content, len(contents))
	half := make([]*genai.Content, len(contents))
	for i, c := range contents {
		rewritten[i], half[i] = c, c
		if c.Parts[0].Text != "" {
			rewritten[i] = rogue()
			if i%8 == 0 {
				half[i] = rogue()
			}
		}
	}
	for _, bc := range []struct {
		name     string
		contents []*genai.Content
	}{
		{"matched", contents},
		{"one more at each end", append(append([]*genai.Content{rogue()}, contents...), rogue())},
		{"texts rewritten", rewritten},
		{"some texts rewritten", half},
		{"none of the session", []*genai.Content{rogue(), rogue(), rogue()}},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				window.Map(bc.contents, events, window.View{Agent: "agent"})
			}
		})
	}
}

func BenchmarkSelect(b *testing.B) {
	events, contents := history(20_000)
	r := window.Request{
		Contents: contents, Events: events, Sources: window.Map(contents, events, window.View{Agent: "agent"}),
		Budget: 8000, Hard: 32000, Raw: 5,
		Observed: func(i int) bool { return i < 19_980 }, Tokens: func(int) int { return 50 },
	}
	cut := window.Select(r, window.Cut{}).Cut
	b.ReportAllocs()
	for b.Loop() {
		window.Select(r, cut)
	}
}
