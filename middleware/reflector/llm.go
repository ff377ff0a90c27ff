package reflector

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"google.golang.org/adk/v2/model"
	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/observer"
	"github.com/adkmemory/adkmemory/middleware/prompt"
	"github.com/adkmemory/adkmemory/middleware/token"
)

// DefaultPrompt is the system instruction that the model gets unless [Config] replaces it.
//
//go:embed prompt.md
var DefaultPrompt string

// Config configures an [LLM]. The zero value is ready to use when every request names a model.
type Config struct {
	Model   model.LLM     // default: the one of the request
	Counter token.Counter // default [token.Estimator]
	Prompt  string        // replaces [DefaultPrompt]; the notes and the size wanted follow it in either case

	// Generate is the base of every request's configuration, for a temperature or a limit on output tokens. Its system
	// instruction is replaced.
	Generate *genai.GenerateContentConfig

	MaxOutputBytes int // of an answer, past which it is rejected; default 64 KiB
}

// WithDefaults returns a copy with every default filled in.
func (c Config) WithDefaults() Config {
	if c.Counter == nil {
		c.Counter = token.Estimator{}
	}
	if c.Prompt == "" {
		c.Prompt = DefaultPrompt
	}
	if c.MaxOutputBytes == 0 {
		c.MaxOutputBytes = 64 << 10
	}
	return c
}

// LLM is a Reflector that asks a model.
type LLM struct {
	cfg Config
}

// New returns a Reflector that asks a model. It reports every fault of the configuration.
func New(cfg Config) (*LLM, error) {
	if cfg.MaxOutputBytes < 0 {
		return nil, fmt.Errorf("adkmemory: reflector MaxOutputBytes is %d, must not be negative", cfg.MaxOutputBytes)
	}
	return &LLM{cfg: cfg.WithDefaults()}, nil
}

// Reflect implements [Reflector]. Errors: [observer.ErrNoMessages] for a request without notes, [observer.ErrNoModel],
// [observer.ErrRejected] with its reason, an [observer.ResponseError], or what the model or the context returned.
func (r *LLM) Reflect(ctx context.Context, req Request) (observer.Note, error) {
	notes := req.notes()
	if len(notes) == 0 {
		return observer.Note{}, observer.ErrNoMessages
	}
	llm := r.cfg.Model
	if llm == nil {
		llm = req.Model
	}
	note, err := observer.Ask(ctx, llm, observer.Question{
		Instruction: r.cfg.Prompt,
		Text:        transcript(notes) + closing(req.target(r.cfg.Counter)),
		Generate:    r.cfg.Generate,
		MaxBytes:    r.cfg.MaxOutputBytes,
	})
	if err != nil {
		return note, err
	}
	note.Tokens = r.cfg.Counter.Count(note.Text)
	return note, Check(note.Text, req, r.cfg.Counter)
}

// maxSizeFactor is how far a reflection may miss the size asked for: models count badly.
const maxSizeFactor = 2

// Check reports why a reflection of the request's notes is refused, nil when it is not: it is empty
// ([observer.ErrEmpty]), goes round in circles ([observer.ErrRepetitive]), or is not smaller than its sources or more
// than twice the size asked for ([observer.ErrTooLong]).
func Check(note string, req Request, c token.Counter) error {
	if c == nil {
		c = token.Estimator{}
	}
	if err := observer.CheckText(note); err != nil {
		return err
	}
	tokens, source := c.Count(note), req.sourceTokens(c)
	if tokens >= source {
		return fmt.Errorf("%w: %d tokens, not less than its sources with %d", observer.ErrTooLong, tokens, source)
	}
	if limit := maxSizeFactor * req.target(c); tokens > limit {
		return fmt.Errorf("%w: %d tokens, at most %d are accepted", observer.ErrTooLong, tokens, limit)
	}
	return nil
}

func closing(target int) string {
	return fmt.Sprintf("\n\nThe notes end here. Write the one note, in their language, in at most %d tokens (about %d words).",
		target, max(1, target*3/4))
}

func transcript(notes []backends.Note) string {
	var b strings.Builder
	b.WriteString("The notes:")
	for i, n := range notes {
		fmt.Fprintf(&b, "\n\nNote %d%s:\n%s", i+1, dates(n.Range), prompt.Quote(n.Text))
	}
	return b.String()
}

func dates(r backends.Range) string {
	if r.StartTime.IsZero() || r.EndTime.IsZero() {
		return ""
	}
	from, to := r.StartTime.UTC().Format(time.DateOnly), r.EndTime.UTC().Format(time.DateOnly)
	if from == to {
		return ", " + from
	}
	return ", " + from + " to " + to
}

func (r Request) notes() []backends.Note {
	notes := make([]backends.Note, 0, len(r.Observations)+len(r.Reflections))
	for _, n := range r.Reflections {
		notes = append(notes, n.Note)
	}
	for _, n := range r.Observations {
		notes = append(notes, n.Note)
	}
	return notes
}

// sourceTokens counts with the counter at hand: the stored counts may come from another one.
func (r Request) sourceTokens(c token.Counter) int {
	sum := 0
	for _, n := range r.Observations {
		sum += c.Count(n.Text)
	}
	for _, n := range r.Reflections {
		sum += c.Count(n.Text)
	}
	return sum
}

// target is the size to aim at, in tokens.
func (r Request) target(c token.Counter) int {
	want := r.MaxTokens
	if want <= 0 {
		want = DefaultTokens
		if len(r.Reflections) > 0 {
			want = DefaultMetaTokens
		}
	}
	return max(1, min(want, r.sourceTokens(c)-1))
}
