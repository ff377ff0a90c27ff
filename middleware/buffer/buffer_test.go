package buffer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/adkmemory/adkmemory/middleware/buffer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scenario runs f in a bubble with fake time: what "at once" and "a deadline later" mean is exact there.
func scenario(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, f)
	})
}

type config = buffer.Config[string, int]

func open(t *testing.T, cfg config) *buffer.Buffer[string, int] {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	b, err := buffer.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func started(t *testing.T, cfg config) *buffer.Buffer[string, int] {
	t.Helper()
	b := open(t, cfg)
	start(t, b)
	return b
}

func start(t *testing.T, b *buffer.Buffer[string, int]) {
	t.Helper()
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func stop(t *testing.T, b *buffer.Buffer[string, int]) {
	t.Helper()
	if err := b.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

// recorder is a Process func that takes a while and keeps what it was given.
type recorder struct {
	mu      sync.Mutex
	took    time.Duration
	jobs    []string
	active  map[string]int
	peak    int // sessions in flight at once
	overlap bool
}

func (r *recorder) process(_ context.Context, key string, job int) {
	r.mu.Lock()
	r.jobs = append(r.jobs, fmt.Sprint(key, job))
	if r.active == nil {
		r.active = make(map[string]int)
	}
	r.active[key]++
	r.overlap = r.overlap || r.active[key] > 1
	r.peak = max(r.peak, len(r.active))
	r.mu.Unlock()
	time.Sleep(r.took)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active[key]--; r.active[key] == 0 {
		delete(r.active, key)
	}
}

func (r *recorder) got() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.jobs)
}

func TestTrigger(t *testing.T) {
	t.Parallel()
	scenario(t, "BUF-1 Trigger returns at once while all workers are busy", func(t *testing.T) {
		r := &recorder{took: time.Hour}
		b := started(t, config{Process: r.process, Workers: 1})
		before := time.Now()
		for i := range 100 {
			if !b.Trigger(fmt.Sprint("s", i), 0) {
				t.Error("refused")
			}
		}
		if time.Since(before) != 0 {
			t.Error("Trigger took time")
		}
		stop(t, b)
	})
	scenario(t, "BUF-4 triggers of one session coalesce to the newest", func(t *testing.T) {
		r := &recorder{took: time.Second}
		b := started(t, config{Process: r.process})
		b.Trigger("a", 1)
		synctest.Wait()
		for job := 2; job <= 50; job++ {
			b.Trigger("a", job)
		}
		if b.Depth() != 1 || b.InFlight() != 1 {
			t.Errorf("depth %d, in flight %d", b.Depth(), b.InFlight())
		}
		stop(t, b)
		if got := r.got(); !slices.Equal(got, []string{"a1", "a50"}) {
			t.Errorf("processed %v", got)
		}
	})
	scenario(t, "BUF-4 one session never has two in flight", func(t *testing.T) {
		r := &recorder{took: time.Second}
		b := started(t, config{Process: r.process})
		for i := range 20 {
			b.Trigger("a", i)
			time.Sleep(300 * time.Millisecond)
		}
		stop(t, b)
		if r.overlap || len(r.got()) < 5 {
			t.Errorf("overlap %v, processed %v", r.overlap, r.got())
		}
	})
	scenario(t, "BUF-4 different sessions run in parallel up to Workers", func(t *testing.T) {
		r := &recorder{took: time.Second}
		b := started(t, config{Process: r.process, Workers: 3})
		before := time.Now()
		for i := range 9 {
			b.Trigger(fmt.Sprint("s", i), 0)
		}
		synctest.Wait()
		if b.InFlight() != 3 || b.Depth() != 6 {
			t.Errorf("in flight %d, depth %d", b.InFlight(), b.Depth())
		}
		stop(t, b)
		if r.peak != 3 || time.Since(before) != 3*time.Second {
			t.Errorf("%d at once, took %v", r.peak, time.Since(before))
		}
	})
	scenario(t, "BUF-4 a busy session does not starve the others", func(t *testing.T) {
		r := &recorder{took: time.Second}
		b := started(t, config{Process: r.process, Workers: 1})
		b.Trigger("a", 1)
		synctest.Wait()
		b.Trigger("a", 2)
		b.Trigger("b", 1)
		stop(t, b)
		if got := r.got(); !slices.Equal(got, []string{"a1", "b1", "a2"}) {
			t.Errorf("processed %v", got)
		}
	})
	scenario(t, "BUF-2 triggers before Start are kept and run once started", func(t *testing.T) {
		r := &recorder{}
		b := open(t, config{Process: r.process})
		b.Trigger("a", 1)
		b.Trigger("a", 2)
		synctest.Wait()
		if len(r.got()) != 0 || b.Depth() != 1 {
			t.Errorf("processed %v, depth %d", r.got(), b.Depth())
		}
		start(t, b)
		stop(t, b)
		if got := r.got(); !slices.Equal(got, []string{"a2"}) {
			t.Errorf("processed %v", got)
		}
	})
	scenario(t, "SEC-4 past the queue limit a new session is dropped, logged and counted", func(t *testing.T) {
		var log bytes.Buffer
		r := &recorder{}
		b := open(t, config{Process: r.process, QueueLimit: 2, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if !b.Trigger("a", 1) || !b.Trigger("b", 1) || b.Trigger("c", 1) {
			t.Error("the limit is not 2")
		}
		if !b.Trigger("a", 2) {
			t.Error("a waiting session was refused")
		}
		if b.Dropped() != 1 || !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "session=c") {
			t.Errorf("dropped %d, log %q", b.Dropped(), log.String())
		}
		start(t, b)
		stop(t, b)
	})
	scenario(t, "SEC-4 a panic is recovered, logged and counted, and the worker goes on", func(t *testing.T) {
		var log bytes.Buffer
		r := &recorder{}
		b := started(t, config{Workers: 1, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Process: func(ctx context.Context, key string, job int) {
				switch job {
				case 1:
					panic("boom")
				case 2:
					runtime.Goexit()
				}
				r.process(ctx, key, job)
			}})
		b.Trigger("a", 1)
		b.Trigger("b", 2)
		b.Trigger("c", 3)
		stop(t, b)
		if b.Panics() != 1 || !slices.Equal(r.got(), []string{"c3"}) {
			t.Errorf("panics %d, processed %v", b.Panics(), r.got())
		}
		if !strings.Contains(log.String(), "boom") || !strings.Contains(log.String(), "session=a") {
			t.Errorf("log %q", log.String())
		}
	})
}

func TestWait(t *testing.T) {
	t.Parallel()
	scenario(t, "BUF-1 Wait returns when the session's work is done", func(t *testing.T) {
		r := &recorder{took: time.Second}
		b := started(t, config{Process: r.process})
		before := time.Now()
		b.Trigger("a", 1)
		synctest.Wait()
		b.Trigger("a", 2)
		if err := b.Wait(t.Context(), "a"); err != nil || time.Since(before) != 2*time.Second {
			t.Errorf("err %v after %v", err, time.Since(before))
		}
		if err := b.Wait(t.Context(), "nobody"); err != nil {
			t.Error(err)
		}
		stop(t, b)
	})
	scenario(t, "BUF-1 Busy tells the end of the current run only", func(t *testing.T) {
		r := &recorder{took: time.Second}
		b := started(t, config{Process: r.process})
		before := time.Now()
		b.Trigger("a", 1)
		synctest.Wait()
		b.Trigger("a", 2)
		ended, busy := b.Busy("a")
		if !busy {
			t.Fatal("not busy")
		}
		<-ended
		if time.Since(before) != time.Second {
			t.Errorf("after %v", time.Since(before))
		}
		stop(t, b)
		if _, busy := b.Busy("a"); busy {
			t.Error("busy after Stop")
		}
	})
	scenario(t, "BUF-1 Wait ends with its context", func(t *testing.T) {
		r := &recorder{took: time.Hour}
		b := started(t, config{Process: r.process})
		b.Trigger("a", 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Wait(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err %v", err)
		}
		stop(t, b)
	})
	scenario(t, "BUF-3 a discarded job wakes who waits for it", func(t *testing.T) {
		b := open(t, config{Process: new(recorder).process})
		b.Trigger("a", 1)
		done := make(chan error)
		go func() { done <- b.Wait(context.Background(), "a") }()
		synctest.Wait()
		_ = b.Stop(t.Context())
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestNewRefusesBadConfig(t *testing.T) {
	t.Parallel()
	_, err := buffer.New(config{Workers: -1, QueueLimit: -1})
	for _, want := range []string{"Process", "Workers", "QueueLimit"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("err %v does not name %s", err, want)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	t.Run("BUF-4 a storm of triggers never overlaps one session and loses no newest job", func(t *testing.T) {
		t.Parallel()
		const keys, jobs = 20, 500
		var last [keys]atomic.Int64
		var active [keys]atomic.Int32
		b, err := buffer.New(buffer.Config[int, int]{Process: func(_ context.Context, key, job int) {
			if active[key].Add(1) != 1 {
				t.Error("two in flight")
			}
			runtime.Gosched()
			last[key].Store(int64(job))
			active[key].Add(-1)
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for key := range keys {
			wg.Go(func() {
				for job := 1; job <= jobs; job++ {
					b.Trigger(key, job)
				}
			})
		}
		wg.Wait()
		if err := b.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		for key := range keys {
			if last[key].Load() != jobs {
				t.Errorf("session %d ended with job %d", key, last[key].Load())
			}
		}
	})
}

func BenchmarkTrigger(b *testing.B) {
	buf, err := buffer.New(buffer.Config[string, int]{Process: func(context.Context, string, int) {}})
	if err != nil {
		b.Fatal(err)
	}
	if err := buf.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		buf.Trigger("session", 1)
	}
	if err := buf.Stop(context.Background()); err != nil {
		b.Fatal(err)
	}
}
