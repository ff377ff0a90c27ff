package middleware_test

import (
	"context"
	"math/rand/v2"
	"sync"

	"github.com/adkmemory/adkmemory/backends"
)

// dice is a source of randomness that agents which run in parallel may share.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (d *dice) n(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

func (d *dice) percent(p int) bool { return d.n(100) < p }

// gate stops the Observer while it is closed.
type gate struct {
	mu   sync.Mutex
	open chan struct{}
}

func (g *gate) set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
		if !open {
			g.open = make(chan struct{})
		}
	default:
		if open {
			close(g.open)
		}
	}
}

func (g *gate) wait(ctx context.Context) error {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// faulty is a store that fails at random, before or after it has done what was asked.
type faulty struct {
	backends.Store
	u *universe
}

func (f faulty) fails() bool { return f.u.dice.percent(int(f.u.faults.Load())) }

func (f faulty) Load(ctx context.Context, key backends.SessionKey, have backends.Stamp) (*backends.Snapshot, error) {
	if f.fails() {
		return nil, errRandom
	}
	return f.Store.Load(ctx, key, have)
}

func (f faulty) Commit(ctx context.Context, key backends.SessionKey, c backends.Commit) (backends.Observation, error) {
	if f.fails() {
		return backends.Observation{}, errRandom
	}
	o, err := f.Store.Commit(ctx, key, c)
	if err == nil && f.fails() {
		return backends.Observation{}, errRandom // the connection broke after the commit
	}
	return o, err
}

func (f faulty) Condense(ctx context.Context, key backends.SessionKey, c backends.Condense) (backends.Reflection, error) {
	if f.fails() {
		return backends.Reflection{}, errRandom
	}
	r, err := f.Store.Condense(ctx, key, c)
	if err == nil && f.fails() {
		return backends.Reflection{}, errRandom
	}
	return r, err
}
