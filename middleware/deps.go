package middleware

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"google.golang.org/adk/v2/model"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/observer"
	"github.com/adkmemory/adkmemory/middleware/reflector"
	"github.com/adkmemory/adkmemory/middleware/token"
	"github.com/adkmemory/adkmemory/retriever"
)

// Store is what the middleware asks of a backend; every [backends.Store] is one.
type Store interface {
	backends.Loader
	backends.Committer
	backends.Archive
}

// Models finds the model that Config.Provider and Config.Model name. A plain function does: see [ModelsFunc].
type Models interface {
	NewModel(ctx context.Context, provider, name string) (model.LLM, error)
}

// ModelsFunc is a function as [Models].
type ModelsFunc func(ctx context.Context, provider, name string) (model.LLM, error)

// NewModel implements [Models].
func (f ModelsFunc) NewModel(ctx context.Context, provider, name string) (model.LLM, error) {
	return f(ctx, provider, name)
}

// Retriever finds what the agent knows beyond the conversation; a [retriever.Retriever] is one. It never fails as a whole
// and bounds its own time.
type Retriever interface {
	Retrieve(ctx context.Context, req retriever.Request) retriever.Result
	Sections(res retriever.Result) (knowledge, memory []retriever.Section)
	Layers() []string
}

// Compactor replaces the first messages of an ADK session by a summary. The messages are the session's events 0 to
// upToIndex; the event at upToIndex must still be expectID. It may compact less than asked for, never more. It returns
// how many events it replaced.
type Compactor func(ctx context.Context, key backends.SessionKey, upToIndex int, expectID, summary string) (int, error)

// Deps are the collaborators of a [Middleware]. Only Store is required; every other one has a default and can be
// replaced alone. All of them must be safe for concurrent use.
type Deps struct {
	// Store keeps notes, cursors and the archive. Required when memory is enabled.
	Store Store

	// Model writes notes when the configuration names none. Default: the model of the call that triggered the note.
	Model model.LLM

	// Models resolves Config.Provider and Config.Model. Required when those are set.
	Models Models

	// Observer and Reflector replace the built-in ones, which ask the model; the extractive twins stay the fallback.
	Observer  observer.Observer
	Reflector reflector.Reflector

	// Retriever adds knowledge that fits the user's words to each prompt. Its layers for observations and reflections, if
	// it has them, are not asked: those stand in the prompt anyway. Default: none.
	Retriever Retriever

	// Redactor takes secrets and personal data out of everything that reaches the Observer's model, the store or the
	// Retriever; redact.New makes one. The agent's own window is not touched. Default: none.
	Redactor Redactor

	// Counter estimates tokens. Default [token.Estimator], about four characters a token.
	Counter token.Counter

	// Logger takes warnings and errors, with the session's key and the ids of the trace. Message and note text is never
	// logged. Default slog.Default().
	Logger *slog.Logger

	// TracerProvider and MeterProvider default to OpenTelemetry's global ones.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider

	// Stored, if set, is told of every note once it is stored, in the background, with the messages that an observation
	// covers (nil for a reflection, or without an archive). It is how notes and messages reach an embedding or graph
	// buffer. It should return at once; a panic is logged and counted.
	Stored func(ctx context.Context, key backends.SessionKey, note backends.Note, messages []backends.Message)

	// WaitGroup, if set, counts the background from Start until it is drained.
	WaitGroup *sync.WaitGroup

	// Now and NewID are the sources of times and note ids. Defaults: time.Now and random UUIDs.
	Now   func() time.Time
	NewID func() string
}
