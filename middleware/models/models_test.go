package models_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/genai"

	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/model/apigee"
	"google.golang.org/adk/v2/model/openaimodel"

	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/models"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ middleware.Models = (*models.Registry)(nil)

// server answers as the servers of several providers do, and remembers what it was asked.
type server struct {
	*httptest.Server
	path, auth atomic.Value
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := new(server)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.path.Store(r.URL.Path)
		s.auth.Store(r.Header.Get("Authorization"))
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/responses") {
			var req struct{ Model string }
			_ = json.Unmarshal(body, &req)
			_, _ = io.WriteString(w, `{"id":"r","object":"response","status":"completed","model":"`+req.Model+`","output":[{"type":"message","id":"m","role":"assistant",
				"status":"completed","content":[{"type":"output_text","text":"hello from `+req.Model+`","annotations":[]}]}],"usage":{"input_tokens":3,"output_tokens":2,"total_tokens":5}}`)
			return
		}
		_, _ = io.WriteString(w, `{"candidates":[{"content":{"role":"model","parts":[{"text":"hello from gemini"}]},"finishReason":"STOP"}]}`)
	}))
	t.Cleanup(s.Close)
	return s
}

func ask(t *testing.T, llm model.LLM) string {
	t.Helper()
	req := &model.LLMRequest{Contents: []*genai.Content{genai.NewContentFromText("hi", genai.RoleUser)}}
	for resp, err := range llm.GenerateContent(t.Context(), req, false) {
		if err != nil {
			t.Fatal(err)
		}
		return resp.Content.Parts[0].Text
	}
	return ""
}

func TestProviders(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	client := s.Client()
	r := models.New(models.Config{
		Gemini: &genai.ClientConfig{APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPClient: client, HTTPOptions: genai.HTTPOptions{BaseURL: s.URL}},
		OpenAI: openaimodel.ClientConfig{APIKey: "k", BaseURL: s.URL + "/vllm/v1", HTTPClient: client},
		Ollama: openaimodel.ClientConfig{BaseURL: s.URL + "/ollama/v1", HTTPClient: client},
	})
	for _, tc := range []struct{ provider, model, answer, path, auth string }{
		{"openai", "qwen", "hello from qwen", "/vllm/v1/responses", "Bearer k"},
		{"ollama", "llama", "hello from llama", "/ollama/v1/responses", "Bearer ollama"},
		{"Gemini", "gemini-x", "hello from gemini", "/v1beta/models/gemini-x:generateContent", ""},
	} {
		t.Run("OBS-3 "+tc.provider+" by name", func(t *testing.T) {
			llm, err := r.NewModel(t.Context(), tc.provider, tc.model)
			if err != nil {
				t.Fatal(err)
			}
			if got := ask(t, llm); got != tc.answer || llm.Name() != tc.model {
				t.Errorf("%s said %q", llm.Name(), got)
			}
			if s.path.Load() != tc.path || s.auth.Load() != tc.auth {
				t.Errorf("asked %v with %v", s.path.Load(), s.auth.Load())
			}
		})
	}
}

func TestApigee(t *testing.T) {
	t.Setenv("GOOGLE_API_KEY", "k")
	t.Run("OBS-3 apigee by name, with and without its prefix", func(t *testing.T) {
		r := models.New(models.Config{Apigee: []apigee.Option{apigee.WithProxyURL("http://proxy.invalid")}})
		for _, name := range []string{"gemini/gemini-x", "apigee/gemini/gemini-x"} {
			if llm, err := r.NewModel(t.Context(), "apigee", name); err != nil || llm.Name() != "apigee/gemini/gemini-x" {
				t.Error(llm, err)
			}
		}
	})
}

type own struct{ name string }

func (o own) Name() string { return o.name }
func (o own) GenerateContent(context.Context, *model.LLMRequest, bool) iter.Seq2[*model.LLMResponse, error] {
	return func(func(*model.LLMResponse, error) bool) {}
}

func TestRegister(t *testing.T) {
	t.Parallel()
	t.Run("OBS-3 an application's own provider is added by one function", func(t *testing.T) {
		t.Parallel()
		r := models.New(models.Config{})
		if err := r.Register("Acme", func(_ context.Context, name string) (model.LLM, error) { return own{name}, nil }); err != nil {
			t.Fatal(err)
		}
		llm, err := r.NewModel(t.Context(), "acme", "m1")
		if err != nil || llm.Name() != "m1" {
			t.Errorf("%v, %v", llm, err)
		}
		if err := r.Register("", nil); err == nil {
			t.Error("an empty registration was taken")
		}
	})
	t.Run("OBS-3 an unknown provider is a typed error that names the known ones", func(t *testing.T) {
		t.Parallel()
		_, err := models.New(models.Config{}).NewModel(t.Context(), "nobody", "m")
		if !errors.Is(err, models.ErrUnknownProvider) || !strings.Contains(err.Error(), "apigee, gemini, ollama, openai, vertexai") {
			t.Error(err)
		}
		_, err = middleware.New(middleware.Config{Enabled: true, Provider: "nobody", Model: "m"}, middleware.Deps{Models: models.New(models.Config{})})
		if !errors.Is(err, middleware.ErrInvalidConfig) || !errors.Is(err, models.ErrUnknownProvider) {
			t.Error(err)
		}
	})
	t.Run("OBS-3 a model that cannot be made is an error", func(t *testing.T) {
		t.Parallel()
		if _, err := models.New(models.Config{}).NewModel(t.Context(), "openai", ""); err == nil {
			t.Error("a model without a name was made")
		}
	})
}
