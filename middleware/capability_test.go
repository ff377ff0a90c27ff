package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/model"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/middleware"
)

type plain struct{ model.LLM }

type variantOnly struct{ model.LLM }

func (variantOnly) GetGoogleLLMVariant() genai.Backend { return genai.BackendVertexAI }

type clientOnly struct {
	model.LLM
	client *genai.Client
}

func (c clientOnly) Client() *genai.Client { return c.client }

type variantAndClient struct {
	variantOnly
	client *genai.Client
}

func (c variantAndClient) Client() *genai.Client { return c.client }

func TestCapabilities(t *testing.T) {
	t.Parallel()
	mem := newMemory(t, middleware.Config{Enabled: true}, middleware.Deps{Store: inmemory.New()})
	inner, live := talker(), new(genai.Client)
	for name, llm := range map[string]model.LLM{
		"none": plain{inner}, "variant": variantOnly{inner}, "client": clientOnly{inner, live}, "both": variantAndClient{variantOnly{inner}, live},
	} {
		t.Run("ADP-2 "+name, func(t *testing.T) {
			t.Parallel()
			w := mem.Model(llm)
			_, wantVariant := llm.(interface{ GetGoogleLLMVariant() genai.Backend })
			_, wantClient := llm.(interface{ Client() *genai.Client })
			v, hasVariant := w.(interface{ GetGoogleLLMVariant() genai.Backend })
			c, hasClient := w.(interface{ Client() *genai.Client })
			if hasVariant != wantVariant || hasClient != wantClient {
				t.Fatalf("variant %v, want %v; client %v, want %v", hasVariant, wantVariant, hasClient, wantClient)
			}
			if hasVariant && v.GetGoogleLLMVariant() != genai.BackendVertexAI || hasClient && c.Client() != live {
				t.Error("something else came out")
			}
			if w.Name() != "talker" {
				t.Errorf("name %q", w.Name())
			}
			if mem.Model(w) != w {
				t.Error("a wrapped model is wrapped again")
			}
		})
	}

	t.Run("ADP-2 no model stays none", func(t *testing.T) {
		t.Parallel()
		if mem.Model(nil) != nil {
			t.Error("nil was wrapped")
		}
	})

	t.Run("ADP-2 every response passes through in order, partial ones and errors included, and no more than are taken", func(t *testing.T) {
		t.Parallel()
		failure := errors.New("the line broke")
		s := &stream{}
		for i := range 5 {
			r, _ := says(fmt.Sprint(i))
			r.Partial = i < 4
			s.responses = append(s.responses, r)
		}
		s.err = failure
		ctx := middleware.WithSessionKey(t.Context(), backends.SessionKey{App: "a", User: "u", Session: "s"})
		i := 0
		for resp, err := range mem.Model(s).GenerateContent(ctx, &model.LLMRequest{}, true) {
			if i < 5 && (resp != s.responses[i] || err != nil) || i == 5 && !errors.Is(err, failure) {
				t.Errorf("response %d: %v, %v", i, resp, err)
			}
			i++
		}
		if i != 6 || !s.streamed {
			t.Errorf("%d responses, streaming %v", i, s.streamed)
		}
		s.taken = 0
		for range mem.Model(s).GenerateContent(ctx, &model.LLMRequest{}, true) { //nolint:errcheck // one is enough
			break
		}
		if s.taken != 1 {
			t.Errorf("%d responses were taken from the model after the caller left", s.taken)
		}
	})
}

// stream yields its responses and then its error.
type stream struct {
	responses []*model.LLMResponse
	err       error
	streamed  bool
	taken     int
}

func (*stream) Name() string { return "stream" }
func (s *stream) GenerateContent(_ context.Context, _ *model.LLMRequest, streaming bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		s.streamed = streaming
		for _, r := range s.responses {
			s.taken++
			if !yield(r, nil) {
				return
			}
		}
		yield(nil, s.err)
	}
}
