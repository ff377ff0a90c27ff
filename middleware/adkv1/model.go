package adkv1

import (
	"context"
	"iter"

	"google.golang.org/genai"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/model"
	v2 "google.golang.org/adk/v2/model"

	"github.com/adkmemory/adkmemory/middleware"
)

// Model wraps an agent's model with memory. The wrapped model keeps its name, streaming and every capability it has.
// With memory disabled, a nil model or one that is wrapped already, it returns llm itself.
func Model(m *middleware.Middleware, llm model.LLM) model.LLM {
	if !m.Enabled() || llm == nil {
		return llm
	}
	if w, ok := llm.(interface{ memory() *middleware.Middleware }); ok && w.memory() == m {
		return llm
	}
	w := &wrapped{m: m, inner: llm, outer: m.Model(upgraded{llm})}
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

// Upgrade gives a model of the first version the second version's form, for middleware.Deps.Model.
func Upgrade(llm model.LLM) v2.LLM { return upgraded{llm} }

// wrapped is a model with memory: the way goes through the middleware as a model of the second version, and comes out at
// upgraded.
type wrapped struct {
	m     *middleware.Middleware
	inner model.LLM
	outer v2.LLM
}

// What ADK looks for beyond model.LLM; each is offered only when the inner model has it.
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

func (w *wrapped) memory() *middleware.Middleware { return w.m }

// Name implements model.LLM with the inner model's name.
func (w *wrapped) Name() string { return w.inner.Name() }

// Unwrap returns the model without memory.
func (w *wrapped) Unwrap() model.LLM { return w.inner }

// GenerateContent implements model.LLM.
func (w *wrapped) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	if ic, ok := ctx.(agent.InvocationContext); ok {
		ctx = invocation{ic}
	}
	return func(yield func(*model.LLMResponse, error) bool) {
		// The two versions' requests and responses differ in their tags only: a conversion of the pointer, no copy.
		for resp, err := range w.outer.GenerateContent(ctx, (*v2.LLMRequest)(req), stream) {
			if !yield((*model.LLMResponse)(resp), err) {
				return
			}
		}
	}
}

// upgraded is a model of the first version in the form of the second.
type upgraded struct{ inner model.LLM }

// Name implements model.LLM.
func (u upgraded) Name() string { return u.inner.Name() }

// GenerateContent implements model.LLM. The inner model sees the context that its caller had.
func (u upgraded) GenerateContent(ctx context.Context, req *v2.LLMRequest, stream bool) iter.Seq2[*v2.LLMResponse, error] {
	if i, ok := ctx.(invocation); ok {
		ctx = i.InvocationContext
	}
	return func(yield func(*v2.LLMResponse, error) bool) {
		for resp, err := range u.inner.GenerateContent(ctx, (*model.LLMRequest)(req), stream) {
			if !yield((*v2.LLMResponse)(resp), err) {
				return
			}
		}
	}
}
