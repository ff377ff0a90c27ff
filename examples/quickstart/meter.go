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
	history, sent           int // tokens of the last request
	allHistory, allSent     int // of all requests
	historyCount, sentCount int // messages in the last request
}

// before is called by ADK with the whole history.
func (m *meter) before(_ agent.Context, req *model.LLMRequest) (*model.LLMResponse, error) {
	m.history, m.historyCount = tokens(req), len(req.Contents)
	m.allHistory += m.history
	return nil, nil
}

// GenerateContent is called by the memory with what is sent.
func (m *meter) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	// The Observer uses the agent's model too, outside of any agent's run; only the agent's calls are counted.
	if _, ok := ctx.(agent.InvocationContext); ok {
		m.sent, m.sentCount = tokens(req), len(req.Contents)
		m.allSent += m.sent
	}
	return m.LLM.GenerateContent(ctx, req, stream)
}

func tokens(req *model.LLMRequest) int {
	counter := token.Estimator{}
	n := 0
	if req.Config != nil {
		n += token.Content(counter, req.Config.SystemInstruction)
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
