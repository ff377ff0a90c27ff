// Package buffer runs background work per session: a trigger returns at once, triggers of one session coalesce, one
// session never has two runs in flight, and different sessions run in parallel up to a number of workers. It knows a
// Process func and nothing else.
//
// Start with [New], then [Buffer.Start], [Buffer.Trigger] and [Buffer.Stop].
package buffer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// Defaults of a [Config].
const (
	DefaultWorkers    = 4
	DefaultQueueLimit = 10_000
)

// stopGrace is how long Stop waits for work to notice that its context was cancelled.
const stopGrace = time.Second

// ErrStopping is returned by Start while an earlier Stop still waits for work that ignores its context.
var ErrStopping = errors.New("buffer: still stopping")

// UnfinishedError is what Stop returns when work was left undone.
type UnfinishedError struct {
	Sessions int   // sessions whose work was cancelled or never begun
	Cause    error // why Stop did not wait: its context's error, or nil when the buffer was never started
}

func (e *UnfinishedError) Error() string {
	if e.Cause == nil {
		return fmt.Sprintf("buffer: %d sessions left unprocessed", e.Sessions)
	}
	return fmt.Sprintf("buffer: %d sessions left unprocessed: %v", e.Sessions, e.Cause)
}

// Unwrap returns the cause.
func (e *UnfinishedError) Unwrap() error { return e.Cause }

// Config says what a Buffer does.
type Config[K comparable, J any] struct {
	// Process does the work for one session. It must return soon after its context is cancelled, which happens only
	// when Stop runs out of time. A panic is recovered, logged and counted. Required.
	Process func(ctx context.Context, key K, job J)

	// Workers is how many sessions are processed at the same time. Default 4.
	Workers int

	// QueueLimit is how many sessions may wait; a trigger for one more is dropped. Default 10,000.
	QueueLimit int

	// WaitGroup, if set, counts the buffer as one from Start until everything that was triggered before Stop is done.
	WaitGroup *sync.WaitGroup

	// Logger reports drops and panics. Default slog.Default().
	Logger *slog.Logger
}

type state int

const (
	created state = iota
	running
	stopping
	stopped
)

// entry is the work of one session: a job that waits, one in flight, or both.
type entry[J any] struct {
	job     J
	waiting bool
	running bool
	ended   chan struct{} // made when somebody waits; closed when a run ends or the waiting job is discarded
}

// Buffer is a per-session coalescing worker pool. It is safe for concurrent use. Without work it holds no goroutine and
// nothing per session.
type Buffer[K comparable, J any] struct {
	cfg Config[K, J]

	mu       sync.Mutex
	state    state
	ctx      context.Context // of the work; from Start to the end of Stop
	cancel   context.CancelFunc
	drained  chan struct{} // closed when the last work after Stop is done
	entries  map[K]*entry[J]
	queue    []K // sessions whose job waits and is not blocked by one in flight, oldest first
	waiting  int
	inFlight int
	dropped  uint64
	panics   uint64
}

// New returns a buffer that keeps triggers and does nothing until it is started. It fails without a Process func or
// with a negative number.
func New[K comparable, J any](cfg Config[K, J]) (*Buffer[K, J], error) {
	var errs []error
	if cfg.Process == nil {
		errs = append(errs, errors.New("buffer: Process is not set"))
	}
	if cfg.Workers < 0 {
		errs = append(errs, fmt.Errorf("buffer: Workers is %d, must not be negative", cfg.Workers))
	}
	if cfg.QueueLimit < 0 {
		errs = append(errs, fmt.Errorf("buffer: QueueLimit is %d, must not be negative", cfg.QueueLimit))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if cfg.Workers == 0 {
		cfg.Workers = DefaultWorkers
	}
	if cfg.QueueLimit == 0 {
		cfg.QueueLimit = DefaultQueueLimit
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return &Buffer[K, J]{cfg: cfg, entries: make(map[K]*entry[J])}, nil
}

// Trigger asks for job to be done for key and returns at once. A job that still waits is replaced; one in flight is let
// finish first. Before Start jobs are kept. It reports false, and counts a drop, when the queue is full or the buffer
// is stopping or stopped.
func (b *Buffer[K, J]) Trigger(key K, job J) bool {
	accepted, full := b.accept(key, job)
	if full { // logged without the lock: a slow log must not hold up other sessions
		b.cfg.Logger.Warn("memory trigger dropped, the queue is full", "session", key, "queue_limit", b.cfg.QueueLimit)
	}
	return accepted
}

func (b *Buffer[K, J]) accept(key K, job J) (accepted, full bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state >= stopping {
		b.dropped++
		return false, false
	}
	e := b.entries[key]
	if e != nil && e.waiting {
		e.job = job
		return true, false
	}
	if b.waiting >= b.cfg.QueueLimit {
		b.dropped++
		return false, true
	}
	if e == nil {
		e = new(entry[J])
		b.entries[key] = e
	}
	e.job, e.waiting = job, true
	b.waiting++
	if !e.running {
		b.queue = append(b.queue, key)
	}
	b.dispatch()
	return true, false
}

// Busy reports whether key has a job that waits or is in flight, and if so returns a channel that is closed when its
// next run ends, whatever the outcome, or its job is discarded.
func (b *Buffer[K, J]) Busy(key K) (<-chan struct{}, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[key]
	if e == nil {
		return nil, false
	}
	if e.ended == nil {
		e.ended = make(chan struct{})
	}
	return e.ended, true
}

// Wait returns nil once key has no job that waits or is in flight, and the context's error if that comes first. Before
// Start it waits for the start as well.
func (b *Buffer[K, J]) Wait(ctx context.Context, key K) error {
	for {
		ended, busy := b.Busy(key)
		if !busy {
			return nil
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Depth is the number of sessions whose job waits.
func (b *Buffer[K, J]) Depth() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting
}

// InFlight is the number of sessions that are being processed.
func (b *Buffer[K, J]) InFlight() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inFlight
}

// Dropped counts the triggers that were refused and the jobs that a Stop discarded.
func (b *Buffer[K, J]) Dropped() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dropped
}

// Panics counts the runs that panicked.
func (b *Buffer[K, J]) Panics() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.panics
}

// dispatch starts what may run now. The caller holds mu.
func (b *Buffer[K, J]) dispatch() {
	for b.state != created && len(b.queue) > 0 && b.inFlight < b.cfg.Workers {
		key := b.queue[0]
		clear(b.queue[:1])
		b.queue = b.queue[1:]
		e := b.entries[key]
		job := e.job
		var none J
		e.job, e.waiting, e.running = none, false, true
		b.waiting--
		b.inFlight++
		go b.run(b.ctx, key, job)
	}
	if len(b.queue) == 0 {
		b.queue = nil
	}
}

// run processes one job. Everything after it is deferred, so that neither a panic nor runtime.Goexit loses a worker.
func (b *Buffer[K, J]) run(ctx context.Context, key K, job J) {
	defer b.finish(key)
	defer func() {
		if p := recover(); p != nil {
			b.mu.Lock()
			b.panics++
			b.mu.Unlock()
			b.cfg.Logger.Error("memory work panicked", "session", key, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	b.cfg.Process(ctx, key, job)
}

func (b *Buffer[K, J]) finish(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inFlight--
	e := b.entries[key]
	e.running = false
	e.signal()
	if e.waiting {
		b.queue = append(b.queue, key)
	} else {
		delete(b.entries, key)
	}
	b.dispatch()
	b.endIfDrained()
}

func (e *entry[J]) signal() {
	if e.ended != nil {
		close(e.ended)
		e.ended = nil
	}
}
