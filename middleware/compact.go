package middleware

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/prompt"
)

// compact asks the compactor, if one is set, to replace the observed messages of the ADK session by a summary of all
// active notes. A failure is logged and counted; all messages stay then.
func (m *Middleware) compact(ctx context.Context, key backends.SessionKey, j job) {
	compactor := m.compactor.Load()
	if compactor == nil || j.upTo < 0 || j.upToID == "" {
		return
	}
	if err := m.compactWith(ctx, *compactor, key, j); err != nil && !errors.Is(err, backends.ErrConflict) {
		m.fault(ctx, &m.stats.compactFailures, "the session could not be compacted; all messages stay", err, "session", key.String())
	}
}

func (m *Middleware) compactWith(ctx context.Context, compactor Compactor, key backends.SessionKey, j job) (err error) {
	ctx, a := m.telemetry.start(ctx, stageCompact, key, j.link)
	defer func() { a.end(err) }()
	snap, err := m.deps.Store.Load(ctx, key, backends.Stamp{})
	if err != nil || snap == nil {
		return err
	}
	summary := prompt.Memory(snap.Reflections, snap.Observations, prompt.Budget{Tokens: m.cfg.MemoryTokenBudget, Counter: m.deps.Counter})
	if summary.Text == "" {
		return nil
	}
	n, err := compactor(ctx, key, j.upTo, j.upToID, summary.Text)
	if err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	if n == 0 {
		return nil
	}
	m.stats.compactions.Add(1)
	a.span.SetAttributes(attribute.Int(attrReplaced, n))
	for stream, cursor := range snap.Cursors {
		if err := m.deps.Store.RebaseCursor(ctx, key, snap.Epoch, stream, cursor); err != nil {
			return fmt.Errorf("rebase: %w", err)
		}
	}
	return nil
}

func compareStreams(a, b backends.Stream) int {
	return cmp.Or(cmp.Compare(a.Branch, b.Branch), cmp.Compare(a.Scope, b.Scope))
}
