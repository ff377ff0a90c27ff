package rag

import "context"

// Task says what a text is embedded for; some models embed questions and documents differently.
type Task int

// The tasks.
const (
	Document Task = iota
	Query
)

// Embedder turns texts into vectors. Implementations are safe for concurrent use.
type Embedder interface {
	// Model names the embedder with everything that makes its vectors incomparable to others', such as the model and
	// the number of dimensions. Vectors are stored under it.
	Model() string

	// Embed returns one vector a text, in their order, all of one length.
	Embed(ctx context.Context, task Task, texts []string) ([][]float32, error)
}
