package rag

import (
	"context"
	"slices"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/retriever/queue"
)

// maxBatch is how many texts an embedder gets at once: what every known provider takes.
const maxBatch = 100

// EmbeddingRequest asks for vectors of documents of one user.
type EmbeddingRequest struct {
	ID        string // of the request, for logs
	App, User string
	Documents []Text
}

// Text is a stored document with what is embedded of it.
type Text struct {
	Ref  backends.Ref
	Text string
}

// BufferConfig configures an [EmbeddingBuffer].
type BufferConfig struct {
	queue.Config

	// Redact runs over every text before the embedder gets it. Default: none.
	Redact func(text string) string
}

// EmbeddingBuffer embeds documents in the background and stores their vectors. A full queue drops a request with a
// warning that carries the request's id, and counts it; what was dropped is found by words all the same. It is safe for
// concurrent use.
type EmbeddingBuffer struct {
	*queue.Queue[EmbeddingRequest]
	embedder Embedder
	store    backends.VectorStore
	redact   func(string) string
}

// NewEmbeddingBuffer returns a buffer that waits for Start.
func NewEmbeddingBuffer(cfg BufferConfig, e Embedder, s backends.VectorStore) *EmbeddingBuffer {
	if cfg.Name == "" {
		cfg.Name = "embedding"
	}
	b := &EmbeddingBuffer{embedder: e, store: s, redact: cfg.Redact}
	b.Queue = queue.New(cfg.Config, func(r EmbeddingRequest) string { return r.ID }, b.embed)
	return b
}

func (b *EmbeddingBuffer) embed(ctx context.Context, req EmbeddingRequest) error {
	for docs := range slices.Chunk(req.Documents, maxBatch) {
		var texts []string
		var refs []backends.Ref
		for _, d := range docs {
			text := d.Text
			if b.redact != nil {
				text = b.redact(text)
			}
			if text != "" {
				texts, refs = append(texts, text), append(refs, d.Ref)
			}
		}
		if len(texts) == 0 {
			continue
		}
		values, err := b.embedder.Embed(ctx, Document, texts)
		if err == nil {
			err = complete(b.embedder.Model(), texts, values)
		}
		if err != nil {
			return err
		}
		vectors := make([]backends.Vector, len(values))
		for i, v := range values {
			vectors[i] = backends.Vector{Ref: refs[i], Model: b.embedder.Model(), Values: v}
		}
		if err := b.store.PutVectors(ctx, req.App, req.User, vectors); err != nil {
			return err
		}
	}
	return nil
}
