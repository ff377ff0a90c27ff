package middleware

import (
	"context"
	"iter"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/model"
)

// wrapped is a model with memory.
type wrapped struct {
	m     *Middleware
	inner model.LLM
}

// The capabilities beyond model.LLM that ADK v2.2 looks for: a native output schema and a live connection. Each is
// offered only when the inner model has it, since ADK concludes from the mere presence of the method.
type (
	variant interface{ GetGoogleLLMVariant() genai.Backend }
	client  interface{ Client() *genai.Client }

	withVariant struct {
		*wrapped
		variant
	}
	withClient struct {
		*wrapped
		client
	}
	withBoth struct {
		*wrapped
		variant
		client
	}
)

func wrap(m *Middleware, llm model.LLM) model.LLM {
	w := &wrapped{m: m, inner: llm}
	v, hasVariant := llm.(variant)
	c, hasClient := llm.(client)
	switch {
	case hasVariant && hasClient:
		return withBoth{w, v, c}
	case hasVariant:
		return withVariant{w, v}
	case hasClient:
		return withClient{w, c}
	}
	return w
}

// Name implements model.LLM with the inner model's name.
func (w *wrapped) Name() string { return w.inner.Name() }

// Unwrap returns the model without memory.
func (w *wrapped) Unwrap() model.LLM { return w.inner }

func (w *wrapped) memory() *Middleware { return w.m }

// GenerateContent implements model.LLM: it sends the request with memory and passes the responses through untouched.
// Whatever fails in memory, the call goes out.
func (w *wrapped) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		t := w.m.prepare(ctx, req, w.inner)
		for resp, err := range w.inner.GenerateContent(ctx, t.request, stream) {
			if err == nil && resp != nil && !resp.Partial {
				t.usage(resp.UsageMetadata)
			}
			if !yield(resp, err) {
				return
			}
		}
	}
}

type noMemoryKey struct{}

// withoutMemory marks a context whose model calls are the library's own: an Observer never runs through the middleware.
func withoutMemory(ctx context.Context) context.Context {
	return context.WithValue(ctx, noMemoryKey{}, true)
}

func skipsMemory(ctx context.Context) bool { return ctx.Value(noMemoryKey{}) != nil }

// unwrap returns the model beneath any memory middleware.
func unwrap(llm model.LLM) model.LLM {
	for {
		w, ok := llm.(interface {
			Unwrap() model.LLM
			memory() *Middleware
		})
		if !ok {
			return llm
		}
		llm = w.Unwrap()
	}
}
