// Package queue is a bounded queue with workers that drops what does not fit, and counts it: what the embedding and the
// graph buffer share. It never blocks who adds.
package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults of [Config].
const (
	DefaultSize    = 1000
	DefaultTimeout = 30 * time.Second
)

// Config configures a [Queue].
type Config struct {
	Name    string        // names the queue in logs
	Size    int           // requests that wait; default [DefaultSize]
	Workers int           // requests handled at a time; default 1
	Timeout time.Duration // of handling one request; default [DefaultTimeout]
	Logger  *slog.Logger  // default [slog.Default]
}

// Queue hands requests to workers in the order they were added. It is safe for concurrent use.
type Queue[T any] struct {
	cfg     Config
	handle  func(context.Context, T) error
	id      func(T) string
	dropped atomic.Int64
	failed  atomic.Int64

	mu      sync.Mutex
	waiting chan T
	stopped bool
	started bool
	cancel  context.CancelFunc
	work    sync.WaitGroup
}

// New returns a queue that waits for Start. id names a request in logs.
func New[T any](cfg Config, id func(T) string, handle func(context.Context, T) error) *Queue[T] {
	cfg.Size, cfg.Workers = max(1, cmp.Or(cfg.Size, DefaultSize)), max(1, cfg.Workers)
	cfg.Timeout, cfg.Logger = cmp.Or(cfg.Timeout, DefaultTimeout), cmp.Or(cfg.Logger, slog.Default())
	return &Queue[T]{cfg: cfg, id: id, handle: handle, waiting: make(chan T, cfg.Size)}
}

// Add queues a request and returns at once. When the queue is full or stopped the request is dropped, logged and
// counted, and Add returns false. Requests added before Start wait for it.
func (q *Queue[T]) Add(req T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	reason := "full"
	if q.stopped {
		reason = "stopped"
	} else {
		select {
		case q.waiting <- req:
			return true
		default:
		}
	}
	n := q.dropped.Add(1)
	q.cfg.Logger.Warn("request dropped", "queue", q.cfg.Name, "request_id", q.id(req), "reason", reason, "dropped", n)
	return false
}

// DroppedCount is the number of requests that were dropped.
func (q *Queue[T]) DroppedCount() int64 { return q.dropped.Load() }

// FailedCount is the number of requests whose handling failed.
func (q *Queue[T]) FailedCount() int64 { return q.failed.Load() }

// Depth is the number of requests that wait.
func (q *Queue[T]) Depth() int { return len(q.waiting) }

// Start begins to handle requests. It is idempotent; a queue that was stopped stays so.
func (q *Queue[T]) Start(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.started || q.stopped {
		return nil
	}
	q.started = true
	ctx, q.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for range q.cfg.Workers {
		q.work.Go(func() {
			for req := range q.waiting {
				q.one(ctx, req)
			}
		})
	}
	return nil
}

func (q *Queue[T]) one(ctx context.Context, req T) {
	ctx, cancel := context.WithTimeout(ctx, q.cfg.Timeout)
	defer cancel()
	var err error
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
		if err != nil {
			q.failed.Add(1)
			q.cfg.Logger.WarnContext(ctx, "request failed", "queue", q.cfg.Name, "request_id", q.id(req), "error", err)
		}
	}()
	if err = ctx.Err(); err == nil {
		err = q.handle(ctx, req)
	}
}

// ErrLeft means that Stop's context ended before all requests were handled. What was left is lost.
var ErrLeft = errors.New("adkmemory: queue stopped before it was empty")

// Stop takes no more requests and handles those that wait, until ctx ends: then work is cancelled, and the error wraps
// [ErrLeft] and says how many were left. Without Start it drops what waits. It is idempotent.
func (q *Queue[T]) Stop(ctx context.Context) error {
	q.mu.Lock()
	if !q.stopped {
		q.stopped = true
		close(q.waiting)
	}
	started, cancel := q.started, q.cancel
	q.mu.Unlock()
	if !started {
		for range q.waiting {
			q.dropped.Add(1)
		}
		return nil
	}
	defer cancel()
	done := make(chan struct{})
	go func() {
		q.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	left := len(q.waiting)
	cancel()
	<-done
	return fmt.Errorf("%w: %s had %d requests left: %w", ErrLeft, q.cfg.Name, left, context.Cause(ctx))
}
