// Package stage holds what the examples share: a model that needs no network, and how a line is said to an agent.
package stage

import (
	"context"
	"iter"
	"strings"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
)

// Model stands in for a language model: it answers each request with what Reply returns.
type Model struct {
	Label string // its name
	Reply func(req *model.LLMRequest) *genai.Content
}

var _ model.LLM = Model{}

// Name implements [model.LLM].
func (m Model) Name() string { return m.Label }

// GenerateContent implements [model.LLM].
func (m Model) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		yield(&model.LLMResponse{Content: m.Reply(req), TurnComplete: true}, nil)
	}
}

// Text returns what a content says, without its thoughts. Nil says nothing.
func Text(content *genai.Content) string {
	if content == nil {
		return ""
	}
	var parts []string
	for _, p := range content.Parts {
		if p != nil && p.Text != "" && !p.Thought {
			parts = append(parts, p.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// Instruction returns a request's system instruction.
func Instruction(req *model.LLMRequest) string {
	if req.Config == nil {
		return ""
	}
	return Text(req.Config.SystemInstruction)
}

// Said is one line of a turn.
type Said struct{ Author, Text string }

// Say runs one turn and returns what was said in it by any agent.
func Say(ctx context.Context, r *runner.Runner, user, session, line string) ([]Said, error) {
	var said []Said
	message := genai.NewContentFromText(line, genai.RoleUser)
	for event, err := range r.Run(ctx, user, session, message, agent.RunConfig{}) {
		if err != nil {
			return nil, err
		}
		if text := Text(event.Content); text != "" {
			said = append(said, Said{event.Author, text})
		}
	}
	return said, nil
}
