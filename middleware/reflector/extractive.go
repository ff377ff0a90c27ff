package reflector

import (
	"context"

	"github.com/adkmemory/adkmemory/middleware/observer"
	"github.com/adkmemory/adkmemory/middleware/token"
)

// ExtractiveConfig configures an [Extractive]. The zero value is ready to use.
type ExtractiveConfig struct {
	Counter token.Counter // default [token.Estimator]
}

// Extractive is a Reflector that needs no model.
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

// Reflect implements [Reflector].
func (e *Extractive) Reflect(ctx context.Context, req Request) (observer.Note, error) {
	return observer.Note{}, ctx.Err()
}
