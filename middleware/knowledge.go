package middleware

import (
	"context"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/window"
	"github.com/adkmemory/adkmemory/retriever"
)

// knowledgeLayers returns the retriever's layers that a turn asks: all but the notes, which stand in the prompt anyway.
func (m *Middleware) knowledgeLayers() []string {
	if m.deps.Retriever == nil {
		return nil
	}
	return slices.DeleteFunc(m.deps.Retriever.Layers(), func(name string) bool {
		return name == retriever.Observations || name == retriever.Reflections
	})
}

// retrieve asks the layers for what fits the latest user message, while the caller goes on. The returned func waits and
// gives the knowledge sections; a panicking retriever costs the knowledge, not the turn.
func (m *Middleware) retrieve(ctx context.Context, key backends.SessionKey, query string) func() string {
	if len(m.layers) == 0 {
		return func() string { return "" }
	}
	done := make(chan string, 1)
	go func() {
		var text string
		defer func() { done <- text }()
		m.safely(ctx, func() {
			ctx, a := m.telemetry.start(ctx, stageRetrieve, key, trace.SpanContext{})
			defer a.end(nil)
			res := m.deps.Retriever.Retrieve(ctx, retriever.Request{Query: query, Key: key, Layers: m.layers})
			knowledge, _ := m.deps.Retriever.Sections(res)
			texts := make([]string, len(knowledge))
			for i, s := range knowledge {
				texts[i] = s.Text
			}
			text = strings.Join(texts, "\n\n")
		})
	}()
	return func() string {
		select {
		case text := <-done:
			return text
		case <-ctx.Done():
			return ""
		}
	}
}

// query is the latest user message: the one that began the invocation, or the newest text that a user wrote.
func (c caller) query(ctx context.Context, req *model.LLMRequest) string {
	if rc, ok := ctx.(interface{ UserContent() *genai.Content }); ok && c.invocationID != "" {
		if text := plainText(rc.UserContent()); text != "" {
			return text
		}
	}
	for _, content := range slices.Backward(req.Contents) {
		if content != nil && content.Role == genai.RoleUser && !window.HasResponse(content) {
			if text := plainText(content); text != "" {
				return text
			}
		}
	}
	return ""
}

var _ interface{ UserContent() *genai.Content } = agent.InvocationContext(nil)

func plainText(c *genai.Content) string {
	if c == nil {
		return ""
	}
	var texts []string
	for _, p := range c.Parts {
		if p != nil && p.Text != "" && !p.Thought {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// order puts the sections in the layout's order. By default knowledge comes first, then memory. The cache-friendly
// layout keeps what changes with the query last.
func (m *Middleware) order(knowledge, memory, raw string) []string {
	if m.cfg.Layout == LayoutCacheFriendly {
		return []string{memory, raw, knowledge}
	}
	return []string{knowledge, memory, raw}
}
