package stage_test

import (
	"context"
	"fmt"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/examples/internal/stage"
)

func ExampleSay() {
	parrot := stage.Model{Label: "parrot", Reply: func(req *model.LLMRequest) *genai.Content {
		return genai.NewContentFromText(stage.Text(req.Contents[len(req.Contents)-1])+"!", genai.RoleModel)
	}}
	bird, err := llmagent.New(llmagent.Config{Name: "bird", Model: parrot})
	if err != nil {
		panic(err)
	}
	r, err := runner.New(runner.Config{AppName: "zoo", Agent: bird, SessionService: session.InMemoryService(), AutoCreateSession: true})
	if err != nil {
		panic(err)
	}
	said, err := stage.Say(context.Background(), r, "ada", "1", "Hello")
	fmt.Println(said, err)
	// Output: [{bird Hello!}] <nil>
}
