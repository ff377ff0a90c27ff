package observer

import (
	"context"
	"time"

	"google.golang.org/adk/v2/model"
	"google.golang.org/genai"
)

// Observer writes one note over a contiguous run of messages. Implementations are safe for concurrent use, do not
// change the request, and stop when the context ends. A note that a guard refuses is an error that wraps [ErrRejected].
type Observer interface {
	Observe(ctx context.Context, req Request) (Note, error)
}

// Message is one content of the conversation with its identity.
type Message struct {
	ID      string
	Author  string    // "user" or an agent's name; empty means the content's role
	Time    time.Time // relative dates are resolved in its location; zero means unknown
	Content *genai.Content
	Tokens  int // 0 means that the Observer counts
}

// Request names what to observe.
type Request struct {
	Messages  []Message // contiguous, oldest first
	MaxTokens int       // size to aim at; 0 means a quarter of the source, within [MinNoteTokens] and [MaxNoteTokens]
	Model     model.LLM // of the call that caused this one; used when the Observer has none of its own
}

// Bounds of the size aimed at when a request names none, in tokens.
const (
	MinNoteTokens = 60
	MaxNoteTokens = 400
)

// Note is what an Observer or a Reflector wrote.
type Note struct {
	Text   string
	Tokens int
	Writer string // the model's name, or [WriterExtractive]

	// Usage is what the model reported, nil when it reported nothing. It is set beside an error too, for a rejected
	// answer costs as much as an accepted one.
	Usage *genai.GenerateContentResponseUsageMetadata
}

// WriterExtractive is the writer of notes that no model wrote.
const WriterExtractive = "extractive"
