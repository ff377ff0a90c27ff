package main

import (
	"context"
	"encoding/json"
	"iter"
	"strings"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/middleware/token"
)

// meter stands inside the memory's wrapper and counts what is really sent. As a callback of the agent it also sees the
// request before the memory does, with the whole history in it.
type meter struct {
	model.LLM
	last, all               struct{ history, sent, memory int } // tokens of the last request and of all
	historyCount, sentCount int                                 // messages in the last request
	instruction             int                                 // tokens of the agent's own instruction
}

// before is called by ADK with the whole history.
func (m *meter) before(_ agent.Context, req *model.LLMRequest) (*model.LLMResponse, error) {
	m.last.history, m.historyCount = tokens(req), len(req.Contents)
	m.all.history += m.last.history
	m.instruction = instructionTokens(req)
	return nil, nil
}

// GenerateContent is called by the memory with what is sent.
func (m *meter) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	// The Observer uses the agent's model too, outside of any agent's run; only the agent's calls are counted.
	if _, ok := ctx.(agent.InvocationContext); ok {
		m.last.sent, m.sentCount = tokens(req), len(req.Contents)
		m.last.memory = instructionTokens(req) - m.instruction
		m.all.sent += m.last.sent
		m.all.memory += m.last.memory
	}
	return m.LLM.GenerateContent(ctx, req, stream)
}

func instructionTokens(req *model.LLMRequest) int {
	if req.Config == nil {
		return 0
	}
	return token.Content(token.Estimator{}, req.Config.SystemInstruction)
}

func tokens(req *model.LLMRequest) int {
	counter := token.Estimator{}
	n := instructionTokens(req)
	if req.Config != nil {
		if declarations, err := json.Marshal(req.Config.Tools); err == nil {
			n += counter.Count(string(declarations))
		}
	}
	for _, content := range req.Contents {
		n += token.Content(counter, content)
	}
	return n
}

func textOf(content *genai.Content) string {
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
