package buffer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/adkmemory/adkmemory/middleware/buffer"
)

func TestStop(t *testing.T) {
	t.Parallel()
	scenario(t, "BUF-3 Stop completes what is in flight and what waits", func(t *testing.T) {
		r := &recorder{took: time.Second}
		b := started(t, config{Process: r.process, Workers: 2})
		for i := range 10 {
			b.Trigger(fmt.Sprint("s", i), 0)
		}
		stop(t, b)
		if len(r.got()) != 10 || b.Depth() != 0 || b.InFlight() != 0 {
			t.Errorf("processed %v, depth %d, in flight %d", r.got(), b.Depth(), b.InFlight())
		}
	})
	scenario(t, "BUF-3 no signal is accepted from Stop on", func(t *testing.T) {
		r := &recorder{took: time.Second}
		b := started(t, config{Process: r.process})
		b.Trigger("a", 1)
		done := make(chan error)
		go func() { done <- b.Stop(context.Background()) }()
		synctest.Wait()
		if b.Trigger("a", 2) || b.Trigger("b", 1) {
			t.Error("accepted while stopping")
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if b.Trigger("c", 1) || b.Dropped() != 3 || len(r.got()) != 1 {
			t.Errorf("dropped %d, processed %v", b.Dropped(), r.got())
		}
	})
	scenario(t, "BUF-3 the deadline cancels the work and the error says how much was left", func(t *testing.T) {
		var cancelled atomic.Int32
		b := started(t, config{Workers: 2, Process: func(ctx context.Context, _ string, _ int) {
			<-ctx.Done()
			cancelled.Add(1)
		}})
		for i := range 5 {
			b.Trigger(fmt.Sprint("s", i), 0)
		}
		synctest.Wait()
		b.Trigger("s0", 1) // both in flight and waiting: one session
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		before := time.Now()
		err := b.Stop(ctx)
		var left *buffer.UnfinishedError
		if !errors.As(err, &left) || left.Sessions != 5 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err %v", err)
		}
		if !strings.Contains(err.Error(), "5 sessions") {
			t.Errorf("message %q", err)
		}
		if time.Since(before) != time.Minute || cancelled.Load() != 2 || b.InFlight() != 0 {
			t.Errorf("after %v, %d cancelled, %d in flight", time.Since(before), cancelled.Load(), b.InFlight())
		}
	})
	scenario(t, "BUF-3 a cancelled context still lets finished work end without an error", func(t *testing.T) {
		b := started(t, config{Process: new(recorder).process})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	scenario(t, "BUF-3 Stop does not hang on work that ignores its context", func(t *testing.T) {
		b := started(t, config{Process: func(context.Context, string, int) { time.Sleep(time.Hour) }})
		b.Trigger("a", 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		before := time.Now()
		if err := b.Stop(ctx); err == nil || time.Since(before) > 3*time.Second {
			t.Errorf("err %v after %v", err, time.Since(before))
		}
		if err := b.Start(t.Context()); !errors.Is(err, buffer.ErrStopping) {
			t.Errorf("Start: %v", err)
		}
		stop(t, b)
		start(t, b)
		stop(t, b)
	})
	scenario(t, "BUF-3 the end of Start's context does not end the work", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := &recorder{took: time.Second}
		var failed atomic.Bool
		b := open(t, config{Process: func(ctx context.Context, key string, job int) {
			r.process(ctx, key, job)
			failed.Store(ctx.Err() != nil)
		}})
		if err := b.Start(ctx); err != nil {
			t.Fatal(err)
		}
		b.Trigger("a", 1)
		cancel()
		stop(t, b)
		if failed.Load() || len(r.got()) != 1 {
			t.Errorf("cancelled %v, processed %v", failed.Load(), r.got())
		}
	})
	scenario(t, "BUF-2 the WaitGroup waits for what was triggered before Stop", func(t *testing.T) {
		var wg sync.WaitGroup
		r := &recorder{took: time.Second}
		b := started(t, config{Process: r.process, WaitGroup: &wg})
		b.Trigger("a", 1)
		ended := make(chan struct{})
		go func() { wg.Wait(); close(ended) }()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("the WaitGroup did not count the buffer")
		default:
		}
		stop(t, b)
		<-ended
		if len(r.got()) != 1 {
			t.Errorf("processed %v", r.got())
		}
	})
}

func TestStartAndStopInAnyOrder(t *testing.T) {
	t.Parallel()
	scenario(t, "BUF-5 Stop without Start", func(t *testing.T) {
		b := open(t, config{Process: new(recorder).process})
		stop(t, b)
		stop(t, b)
	})
	scenario(t, "BUF-5 Stop without Start reports and discards what was kept", func(t *testing.T) {
		b := open(t, config{Process: new(recorder).process})
		b.Trigger("a", 1)
		var left *buffer.UnfinishedError
		err := b.Stop(t.Context())
		if !errors.As(err, &left) || left.Sessions != 1 || left.Error() == "" || b.Dropped() != 1 {
			t.Errorf("err %v, dropped %d", err, b.Dropped())
		}
		stop(t, b)
	})
	scenario(t, "BUF-5 twice each", func(t *testing.T) {
		var wg sync.WaitGroup
		r := &recorder{}
		b := started(t, config{Process: r.process, WaitGroup: &wg})
		start(t, b)
		b.Trigger("a", 1)
		stop(t, b)
		stop(t, b)
		wg.Wait()
		if len(r.got()) != 1 {
			t.Errorf("processed %v", r.got())
		}
	})
	scenario(t, "BUF-5 Start after Stop works again", func(t *testing.T) {
		r := &recorder{}
		b := started(t, config{Process: r.process})
		stop(t, b)
		start(t, b)
		if !b.Trigger("a", 1) {
			t.Error("refused after restart")
		}
		stop(t, b)
		if len(r.got()) != 1 {
			t.Errorf("processed %v", r.got())
		}
	})
	scenario(t, "BUF-5 concurrent Stops all wait", func(t *testing.T) {
		r := &recorder{took: time.Second}
		b := started(t, config{Process: r.process})
		b.Trigger("a", 1)
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if err := b.Stop(t.Context()); err != nil || b.InFlight() != 0 {
					t.Errorf("err %v, in flight %d", err, b.InFlight())
				}
			})
		}
		wg.Wait()
	})
	scenario(t, "BUF-5 no goroutine while idle", func(t *testing.T) {
		b := started(t, config{Process: new(recorder).process, Workers: 8})
		for i := range 1000 {
			b.Trigger(fmt.Sprint(i), 0)
		}
		synctest.Wait()
		// The bubble ends here without Stop: a goroutine that still waited would fail the test as a deadlock.
	})
}
