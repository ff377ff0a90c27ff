package observer

import (
	"context"

	"github.com/adkmemory/adkmemory/middleware/token"
)

// ExtractiveConfig configures an [Extractive]. The zero value is ready to use.
type ExtractiveConfig struct {
	Counter token.Counter // default [token.Estimator]
}

// Extractive is an Observer that needs no model.
type Extractive struct {
	cfg ExtractiveConfig
}

// NewExtractive returns an Observer that needs no model.
func NewExtractive(cfg ExtractiveConfig) *Extractive {
	if cfg.Counter == nil {
		cfg.Counter = token.Estimator{}
	}
	return &Extractive{cfg: cfg}
}

// Observe implements [Observer].
func (e *Extractive) Observe(ctx context.Context, req Request) (Note, error) {
	return Note{}, ctx.Err()
}
