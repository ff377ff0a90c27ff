package reflector

import (
	"context"

	"google.golang.org/adk/v2/model"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/observer"
)

// Reflector writes one note that replaces several. Implementations are safe for concurrent use, do not change the
// request, and stop when the context ends. A note that a guard refuses, also for not being smaller than its sources, is
// an error that wraps [observer.ErrRejected].
type Reflector interface {
	Reflect(ctx context.Context, req Request) (observer.Note, error)
}

// Sizes aimed at when a request names none, in tokens. One reflection of reflections, three of observations and the
// observations since then fit the memory section at its default budget.
const (
	DefaultTokens     = 300 // of a reflection of observations
	DefaultMetaTokens = 400 // of a reflection of reflections
)

// Request names what to condense, oldest first. Exactly one of the two lists is not empty.
type Request struct {
	Observations []backends.Observation
	Reflections  []backends.Reflection
	MaxTokens    int       // size to aim at; default [DefaultTokens] or [DefaultMetaTokens]; always less than the sources
	Model        model.LLM // of the call that caused this one; used when the Reflector has none of its own
}
