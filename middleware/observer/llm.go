package observer

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/adk/v2/model"
	"google.golang.org/genai"

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
	Prompt  string        // replaces [DefaultPrompt]; the conversation and the size wanted follow it in either case

	// Generate is the base of every request's configuration, for a temperature or a limit on output tokens. Its system
	// instruction is replaced.
	Generate *genai.GenerateContentConfig

	MaxOutputBytes          int // of an answer, past which it is rejected; default 64 KiB
	MaxInputBytesPerMessage int // of one part of a message; what is longer loses its middle; default 16 KiB
	MaxVerbatimBytes        int // see [Guard]; default 160
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
	if c.MaxInputBytesPerMessage == 0 {
		c.MaxInputBytesPerMessage = 16 << 10
	}
	if c.MaxVerbatimBytes == 0 {
		c.MaxVerbatimBytes = DefaultVerbatimBytes
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	for name, v := range map[string]int{
		"MaxOutputBytes": c.MaxOutputBytes, "MaxInputBytesPerMessage": c.MaxInputBytesPerMessage,
		"MaxVerbatimBytes": c.MaxVerbatimBytes,
	} {
		if v < 0 {
			errs = append(errs, fmt.Errorf("adkmemory: observer %s is %d, must not be negative", name, v))
		}
	}
	return errors.Join(errs...)
}

// LLM is an Observer that asks a model.
type LLM struct {
	cfg Config
}

// New returns an Observer that asks a model. It reports every fault of the configuration.
func New(cfg Config) (*LLM, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &LLM{cfg: cfg.WithDefaults()}, nil
}

// Observe implements [Observer]. Errors: [ErrNoMessages], [ErrNoModel], [ErrRejected] with its reason, a
// [ResponseError], or what the model or the context returned.
func (o *LLM) Observe(ctx context.Context, req Request) (Note, error) {
	if len(req.Messages) == 0 {
		return Note{}, ErrNoMessages
	}
	llm := o.cfg.Model
	if llm == nil {
		llm = req.Model
	}
	target := req.target(o.cfg.Counter)
	note, err := Ask(ctx, llm, Question{
		Instruction: o.cfg.Prompt,
		Text:        Transcript(req.Messages, o.cfg.MaxInputBytesPerMessage) + closing(target),
		Generate:    o.cfg.Generate,
		MaxBytes:    o.cfg.MaxOutputBytes,
	})
	if err != nil {
		return note, err
	}
	note.Tokens = o.cfg.Counter.Count(note.Text)
	return note, Check(note.Text, req, Guard{Counter: o.cfg.Counter, MaxVerbatimBytes: o.cfg.MaxVerbatimBytes})
}

func closing(target int) string {
	return fmt.Sprintf("\n\nThe part ends here. Write the note, in the language of the conversation, in at most %d tokens "+
		"(about %d words).", target, max(1, target*3/4))
}

// Question is what [Ask] sends.
type Question struct {
	Instruction string
	Text        string
	Generate    *genai.GenerateContentConfig // base of the request's configuration; may be nil
	MaxBytes    int                          // of the answer; past it the answer is [ErrTooLong]
}

// maxResponses bounds the pieces of one answer, so that a model that never ends its answer is left all the same.
const maxResponses = 10_000

// Ask sends one question to a model without streaming and returns its answer's text, without thoughts and without the
// wrapping that [Clean] removes. It reads no further than it must. It is exported for the Reflector, which asks the same
// way. The note's Tokens are not set; its Writer and Usage are, beside an error too.
func Ask(ctx context.Context, llm model.LLM, q Question) (Note, error) {
	if llm == nil {
		return Note{}, ErrNoModel
	}
	note := Note{Writer: prompt.Inline(llm.Name(), 128)}
	var config genai.GenerateContentConfig
	if q.Generate != nil {
		config = *q.Generate
	}
	config.SystemInstruction = genai.NewContentFromText(q.Instruction, genai.RoleUser)
	req := &model.LLMRequest{
		Model:    llm.Name(),
		Contents: []*genai.Content{genai.NewContentFromText(q.Text, genai.RoleUser)},
		Config:   &config,
	}
	var a answer
	for resp, err := range llm.GenerateContent(ctx, req, false) {
		if err == nil {
			err = a.add(resp, q.MaxBytes)
		}
		if resp != nil && resp.UsageMetadata != nil {
			note.Usage = resp.UsageMetadata
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return note, err
		}
	}
	if err := ctx.Err(); err != nil {
		return note, err
	}
	note.Text = Clean(a.text())
	if note.Text == "" {
		return note, ErrEmpty
	}
	return note, nil
}

// answer collects the text of a response that may come in pieces. Partial pieces count only when no whole one follows:
// the whole one repeats them.
type answer struct {
	whole, partial strings.Builder
	responses      int
}

func (a *answer) text() string {
	if a.whole.Len() > 0 {
		return a.whole.String()
	}
	return a.partial.String()
}

func (a *answer) add(resp *model.LLMResponse, maxBytes int) error {
	if a.responses++; a.responses > maxResponses {
		return fmt.Errorf("%w: more than %d pieces", ErrTooLong, maxResponses)
	}
	if resp == nil {
		return nil
	}
	if resp.ErrorCode != "" || resp.ErrorMessage != "" {
		return responseError(resp.ErrorCode, resp.ErrorMessage)
	}
	into := &a.whole
	if resp.Partial {
		into = &a.partial
	}
	if resp.Content != nil {
		for _, p := range resp.Content.Parts {
			if p == nil || p.Thought {
				continue
			}
			if into.Len()+len(p.Text) > maxBytes {
				return fmt.Errorf("%w: more than %d bytes", ErrTooLong, maxBytes)
			}
			into.WriteString(p.Text)
		}
	}
	switch resp.FinishReason {
	case "", genai.FinishReasonUnspecified, genai.FinishReasonStop:
		return nil
	case genai.FinishReasonMaxTokens:
		return ErrCutOff
	default:
		return responseError(string(resp.FinishReason), "")
	}
}

func responseError(code, message string) error {
	if code == "" {
		code = "unknown"
	}
	return &ResponseError{Code: prompt.Inline(code, 100), Message: prompt.Inline(message, 500)}
}

// target is the size to aim at, in tokens: what the request names, or a quarter of the source within bounds, and always
// less than the source.
func (r Request) target(c token.Counter) int {
	source := r.sourceTokens(c)
	want := r.MaxTokens
	if want <= 0 {
		want = min(max(source/4, MinNoteTokens), MaxNoteTokens)
	}
	return max(1, min(want, source-1))
}

func (r Request) sourceTokens(c token.Counter) int {
	sum := 0
	for _, m := range r.Messages {
		if m.Tokens > 0 {
			sum += m.Tokens
		} else {
			sum += token.Content(c, m.Content)
		}
	}
	return sum
}
