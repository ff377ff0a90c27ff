package middleware

import (
	"context"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

// A lease keeps two processes from paying a model for the same note. Correctness never depends on it: a commit is a
// compare-and-swap whoever holds the lease.
const (
	leaseTTL   = 10 * time.Second // after this a process that died is taken over
	leaseRenew = leaseTTL / 3
	leasePoll  = 200 * time.Millisecond
	leaseWait  = leaseTTL + 2*time.Second // then the holder is alive, and the job is left to the next trigger
)

// lease takes the session's lease and keeps it until release is called. It reports false when another process holds it
// for longer than leaseWait. A store without leases, or one that fails to give one, does not stop the work.
func (m *Middleware) lease(ctx context.Context, key backends.SessionKey) (release func(), ok bool) {
	store, has := m.deps.Store.(backends.Leaser)
	if !has {
		return func() {}, true
	}
	deadline := time.NewTimer(leaseWait)
	defer deadline.Stop()
	for {
		held, err := store.Lease(ctx, key, m.owner, leaseTTL)
		if err != nil {
			m.deps.Logger.DebugContext(ctx, "adkmemory: no lease; working without one", "session", key.String(), "error", err)
			return func() {}, true
		}
		if held {
			break
		}
		select {
		case <-time.After(leasePoll):
		case <-deadline.C:
			return nil, false
		case <-ctx.Done():
			return nil, false
		}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		renew := time.NewTicker(leaseRenew)
		defer renew.Stop()
		for {
			select {
			case <-renew.C:
				_, _ = store.Lease(ctx, key, m.owner, leaseTTL)
			case <-stop:
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
		// Past a Stop's deadline the context is over, but the lease should still be given up.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = store.Release(ctx, key, m.owner)
	}, true
}
