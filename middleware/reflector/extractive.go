package reflector

import (
	"context"
	"time"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/observer"
	"github.com/adkmemory/adkmemory/middleware/observer/extract"
	"github.com/adkmemory/adkmemory/middleware/token"
)

// ExtractiveConfig configures an [Extractive]. The zero value is ready to use.
type ExtractiveConfig struct {
	Counter token.Counter // default [token.Estimator]
}

// Extractive is a Reflector that needs no model: it keeps the statements of the notes that hold the most distinct facts
// for their length, each with its date, says nothing twice, and lists the other names, numbers and dates. It is
// deterministic and takes time about linear in its sources.
type Extractive struct {
	cfg ExtractiveConfig
}

// NewExtractive returns a Reflector that needs no model.
func NewExtractive(cfg ExtractiveConfig) *Extractive {
	if cfg.Counter == nil {
		cfg.Counter = token.Estimator{}
	}
	return &Extractive{cfg: cfg}
}

// sentences is the share of a reflection that is statements while there are facts left to list: less than in an
// observation, for most statements have to go.
const sentences = 0.5

// Reflect implements [Reflector]. The note is smaller than its sources; when nothing of them can be condensed further,
// the error is [observer.ErrTooLong].
func (e *Extractive) Reflect(ctx context.Context, req Request) (observer.Note, error) {
	notes := req.notes()
	if len(notes) == 0 {
		return observer.Note{}, observer.ErrNoMessages
	}
	if err := ctx.Err(); err != nil {
		return observer.Note{}, err
	}
	var lines []extract.Line
	for _, n := range notes {
		day := ""
		if !n.Range.StartTime.IsZero() {
			day = n.Range.StartTime.Format(time.DateOnly)
		}
		lines = append(lines, extract.Parse(n.Text, day)...)
	}
	text := extract.Note(lines, extract.Options{
		MaxTokens:  req.target(e.cfg.Counter),
		Counter:    e.cfg.Counter,
		FactsLabel: span(notes),
		Sentences:  sentences,
	})
	note := observer.Note{Text: text, Tokens: e.cfg.Counter.Count(text), Writer: observer.WriterExtractive}
	if text == "" {
		return note, observer.ErrEmpty
	}
	if note.Tokens >= req.sourceTokens(e.cfg.Counter) {
		return note, observer.ErrTooLong
	}
	return note, nil
}

// span is the label of facts that come from all the notes.
func span(notes []backends.Note) string {
	from, to := notes[0].Range.StartTime, notes[len(notes)-1].Range.EndTime
	if from.IsZero() || to.IsZero() {
		return "…"
	}
	a, b := from.Format(time.DateOnly), to.Format(time.DateOnly)
	if a == b {
		return a
	}
	return a + " … " + b
}
