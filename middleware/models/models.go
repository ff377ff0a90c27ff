// Package models finds models by the names of their providers, for middleware.Deps.Models: a [Registry] knows those
// that ADK ships, and whatever the application registers.
package models

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/model/apigee"
	"google.golang.org/adk/v2/model/gemini"
	"google.golang.org/adk/v2/model/openaimodel"
)

// The providers that a registry knows by itself.
const (
	ProviderGemini = "gemini"   // Gemini API; the key from GOOGLE_API_KEY unless configured
	ProviderVertex = "vertexai" // Gemini on Vertex AI; GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION
	ProviderOpenAI = "openai"   // any server with OpenAI's Responses API; OPENAI_API_KEY and OPENAI_BASE_URL
	ProviderOllama = "ollama"   // a local Ollama
	ProviderApigee = "apigee"   // a model behind an Apigee proxy; APIGEE_PROXY_URL, and the environment of the model behind
)

// OllamaURL is where a local Ollama answers.
const OllamaURL = "http://localhost:11434/v1"

// ErrUnknownProvider means that nobody registered the provider.
var ErrUnknownProvider = errors.New("adkmemory: unknown model provider")

// Factory makes a model by its name.
type Factory func(ctx context.Context, name string) (model.LLM, error)

// Config holds what the providers need beyond their environment variables. The zero value is ready to use.
type Config struct {
	Gemini *genai.ClientConfig      // default: from the environment
	OpenAI openaimodel.ClientConfig // a BaseURL makes "openai" any server of that kind, vLLM for one
	Ollama openaimodel.ClientConfig // default BaseURL [OllamaURL]
	Apigee []apigee.Option
}

// Registry makes models by provider and name. It implements middleware.Models and is safe for concurrent use.
type Registry struct {
	mu        sync.RWMutex
	factories map[string]Factory
}

// New returns a registry of the providers that ADK ships.
func New(cfg Config) *Registry {
	vertex := genai.ClientConfig{}
	if cfg.Gemini != nil {
		vertex = *cfg.Gemini
	}
	vertex.Backend = genai.BackendVertexAI
	if cfg.Ollama.BaseURL == "" {
		cfg.Ollama.BaseURL = OllamaURL
	}
	if cfg.Ollama.APIKey == "" {
		cfg.Ollama.APIKey = "ollama" // it asks for none, but must not get the one meant for OpenAI
	}
	return &Registry{factories: map[string]Factory{
		ProviderGemini: func(ctx context.Context, name string) (model.LLM, error) {
			return gemini.NewModel(ctx, name, cfg.Gemini)
		},
		ProviderVertex: func(ctx context.Context, name string) (model.LLM, error) { return gemini.NewModel(ctx, name, &vertex) },
		ProviderOpenAI: OpenAI(cfg.OpenAI),
		ProviderOllama: OpenAI(cfg.Ollama),
		ProviderApigee: func(ctx context.Context, name string) (model.LLM, error) {
			return apigee.NewModel(ctx, "apigee/"+strings.TrimPrefix(name, "apigee/"), cfg.Apigee...)
		},
	}}
}

// OpenAI returns a factory for the models of a server with OpenAI's Responses API.
func OpenAI(cfg openaimodel.ClientConfig) Factory {
	return func(ctx context.Context, name string) (model.LLM, error) {
		return openaimodel.NewModel(ctx, name, &cfg)
	}
}

// Register adds a provider, or replaces one. The name counts in any case.
func (r *Registry) Register(provider string, f Factory) error {
	if provider == "" || f == nil {
		return errors.New("adkmemory: a model provider needs a name and a factory")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.factories[strings.ToLower(provider)] = f
	return nil
}

// Providers returns the names of all providers, sorted.
func (r *Registry) Providers() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.factories))
}

// NewModel makes a model. [ErrUnknownProvider] when nobody registered the provider.
func (r *Registry) NewModel(ctx context.Context, provider, name string) (model.LLM, error) {
	r.mu.RLock()
	f := r.factories[strings.ToLower(provider)]
	r.mu.RUnlock()
	if f == nil {
		return nil, fmt.Errorf("%w %q; known are %s", ErrUnknownProvider, provider, strings.Join(r.Providers(), ", "))
	}
	llm, err := f(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("adkmemory: model %s of %s: %w", name, provider, err)
	}
	return llm, nil
}
