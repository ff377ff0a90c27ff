package buffer

import (
	"context"
	"time"
)

// Start begins to process, first what was triggered before. The context is for its values only: work goes on when it is
// cancelled, until Stop. Starting twice does nothing; starting after Stop starts again, or returns [ErrStopping] while
// cancelled work has not returned yet.
func (b *Buffer[K, J]) Start(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.state {
	case running:
		return nil
	case stopping:
		return ErrStopping
	}
	if b.cfg.WaitGroup != nil {
		b.cfg.WaitGroup.Add(1)
	}
	b.ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	b.drained = make(chan struct{})
	b.state = running
	b.dispatch()
	return nil
}

// Stop accepts no new triggers, completes what is in flight and what waits, and returns nil. When ctx ends first, it
// discards what waits, cancels the context of what is in flight, gives that a second to return, and returns an
// [UnfinishedError]. A buffer that was never started discards what it kept. Stopping twice does nothing more; a second
// Stop at the same time waits as well.
func (b *Buffer[K, J]) Stop(ctx context.Context) error {
	b.mu.Lock()
	if b.state == created {
		b.state = stopped
		left := b.discard()
		b.mu.Unlock()
		if left > 0 {
			return &UnfinishedError{Sessions: left}
		}
		return nil
	}
	if b.state == running {
		b.state = stopping
	}
	drained := b.drained
	b.endIfDrained()
	b.mu.Unlock()

	if drained == nil {
		return nil
	}
	select {
	case <-drained:
		return nil
	default:
	}
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		return b.abandon(drained, ctx.Err())
	}
}

// abandon cancels what is left. Sessions with a job both in flight and waiting count once.
func (b *Buffer[K, J]) abandon(drained <-chan struct{}, cause error) error {
	b.mu.Lock()
	if b.drained != drained || b.state != stopping { // drained meanwhile
		b.mu.Unlock()
		return nil
	}
	left := len(b.entries)
	b.discard()
	b.cancel()
	b.mu.Unlock()

	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-drained:
	case <-grace.C:
	}
	return &UnfinishedError{Sessions: left, Cause: cause}
}

// discard drops the jobs that wait and returns their number. The caller holds mu.
func (b *Buffer[K, J]) discard() int {
	left := b.waiting
	for key, e := range b.entries {
		if !e.waiting {
			continue
		}
		var none J
		e.job, e.waiting = none, false
		if !e.running {
			e.signal()
			delete(b.entries, key)
		}
	}
	b.queue, b.waiting = nil, 0
	b.dropped += uint64(left)
	return left
}

// endIfDrained completes a Stop once nothing is left to do. The caller holds mu.
func (b *Buffer[K, J]) endIfDrained() {
	if b.state != stopping || len(b.entries) > 0 {
		return
	}
	b.state = stopped
	b.cancel()
	close(b.drained)
	if b.cfg.WaitGroup != nil {
		b.cfg.WaitGroup.Done()
	}
}
