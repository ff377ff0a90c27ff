package rag

import (
	"context"
	"fmt"

	"github.com/openai/openai-go/v3"
	"google.golang.org/genai"
)

// Gemini is an [Embedder] over Google's embedding models.
type Gemini struct {
	Client     *genai.Client
	Name       string // the model; default "gemini-embedding-001"
	Dimensions int32  // default 768
}

var _ Embedder = Gemini{}

func (g Gemini) withDefaults() Gemini {
	if g.Name == "" {
		g.Name = "gemini-embedding-001"
	}
	if g.Dimensions <= 0 {
		g.Dimensions = 768
	}
	return g
}

// Model implements [Embedder].
func (g Gemini) Model() string {
	g = g.withDefaults()
	return fmt.Sprintf("gemini/%s/%d", g.Name, g.Dimensions)
}

// Embed implements [Embedder]. It uses the task types RETRIEVAL_DOCUMENT and RETRIEVAL_QUERY.
func (g Gemini) Embed(ctx context.Context, task Task, texts []string) ([][]float32, error) {
	g = g.withDefaults()
	contents := make([]*genai.Content, len(texts))
	for i, t := range texts {
		contents[i] = genai.NewContentFromText(t, genai.RoleUser)
	}
	cfg := &genai.EmbedContentConfig{TaskType: "RETRIEVAL_DOCUMENT", OutputDimensionality: &g.Dimensions}
	if task == Query {
		cfg.TaskType = "RETRIEVAL_QUERY"
	}
	res, err := g.Client.Models.EmbedContent(ctx, g.Name, contents, cfg)
	if err != nil {
		return nil, fmt.Errorf("adkmemory: embed with %s: %w", g.Name, err)
	}
	out := make([][]float32, 0, len(texts))
	for _, e := range res.Embeddings {
		out = append(out, e.Values)
	}
	return out, complete(g.Name, texts, out)
}

// OpenAI is an [Embedder] over the embeddings of OpenAI and of servers that speak its protocol.
type OpenAI struct {
	Client     openai.Client
	Name       string // the model; default "text-embedding-3-small"
	Dimensions int64  // default: the model's own
}

var _ Embedder = OpenAI{}

func (o OpenAI) name() string {
	if o.Name == "" {
		return openai.EmbeddingModelTextEmbedding3Small
	}
	return o.Name
}

// Model implements [Embedder].
func (o OpenAI) Model() string { return fmt.Sprintf("openai/%s/%d", o.name(), o.Dimensions) }

// Embed implements [Embedder]. These models embed questions and documents alike.
func (o OpenAI) Embed(ctx context.Context, _ Task, texts []string) ([][]float32, error) {
	params := openai.EmbeddingNewParams{
		Model: o.name(), Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts},
		EncodingFormat: openai.EmbeddingNewParamsEncodingFormatFloat,
	}
	if o.Dimensions > 0 {
		params.Dimensions = openai.Int(o.Dimensions)
	}
	res, err := o.Client.Embeddings.New(ctx, params)
	if err != nil {
		return nil, fmt.Errorf("adkmemory: embed with %s: %w", o.name(), err)
	}
	out := make([][]float32, len(texts))
	for _, e := range res.Data {
		if e.Index < 0 || e.Index >= int64(len(out)) {
			return nil, fmt.Errorf("adkmemory: embed with %s: a vector for text %d of %d", o.name(), e.Index, len(out))
		}
		v := make([]float32, len(e.Embedding))
		for i, x := range e.Embedding {
			v[i] = float32(x)
		}
		out[e.Index] = v
	}
	return out, complete(o.name(), texts, out)
}

// complete checks that there is a vector for every text, all of one length.
func complete(model string, texts []string, vectors [][]float32) error {
	if len(vectors) != len(texts) {
		return fmt.Errorf("adkmemory: embed with %s: %d vectors for %d texts", model, len(vectors), len(texts))
	}
	for _, v := range vectors {
		if len(v) == 0 || len(v) != len(vectors[0]) {
			return fmt.Errorf("adkmemory: embed with %s: vectors of different lengths, or empty ones", model)
		}
	}
	return nil
}
