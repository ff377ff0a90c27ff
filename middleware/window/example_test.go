package window_test

import (
	"fmt"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/middleware/window"
)

func Example() {
	var events eventList
	var contents []*genai.Content
	for i, text := range []string{"I live in Oslo.", "Noted.", "Where do I live?"} {
		c, author := genai.NewContentFromText(text, genai.RoleUser), genai.RoleUser
		if i == 1 {
			c.Role, author = genai.RoleModel, "agent"
		}
		contents = append(contents, c)
		events = append(events, &session.Event{ID: fmt.Sprint(i), Author: author, LLMResponse: model.LLMResponse{Content: c}})
	}
	sel := window.Select(window.Request{
		Contents: contents,
		Sources:  window.Map(contents, events, window.View{Agent: "agent"}),
		Events:   events,
		Observed: func(event int) bool { return event < 2 }, // a note covers the first two
		Tokens:   func(content int) int { return len(contents[content].Parts[0].Text) / 4 },
		Budget:   6,
		Hard:     24,
	}, window.Cut{})
	for _, c := range sel.Contents {
		fmt.Println(c.Parts[0].Text)
	}
	// Output:
	// Where do I live?
}
