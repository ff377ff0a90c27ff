package queue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/adkmemory/adkmemory/retriever/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func id(n int) string { return fmt.Sprint("req-", n) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestQueue(t *testing.T) {
	t.Parallel()
	t.Run("DRP-1 DRP-2 a full queue drops with a warning that carries the request id, and counts", func(t *testing.T) {
		t.Parallel()
		var log bytes.Buffer
		q := queue.New(queue.Config{Name: "test", Size: 2, Logger: slog.New(slog.NewTextHandler(&log, nil))}, id,
			func(context.Context, int) error { return nil })
		for n, want := range []bool{true, true, false, false} {
			if got := q.Add(n); got != want {
				t.Errorf("Add(%d) = %v", n, got)
			}
		}
		if q.DroppedCount() != 2 || q.Depth() != 2 {
			t.Errorf("%d dropped, %d wait", q.DroppedCount(), q.Depth())
		}
		if got := log.String(); strings.Count(got, "level=WARN") != 2 || !strings.Contains(got, "request_id=req-2") || !strings.Contains(got, "request_id=req-3") {
			t.Errorf("logged %s", got)
		}
		must(t, q.Stop(t.Context()))
	})
	t.Run("BUF-3 Stop handles what waits, then nothing is taken any more", func(t *testing.T) {
		t.Parallel()
		var done []int
		q := queue.New(queue.Config{}, id, func(_ context.Context, n int) error {
			done = append(done, n)
			return nil
		})
		q.Add(1)
		must(t, q.Start(t.Context()))
		must(t, q.Start(t.Context()))
		q.Add(2)
		must(t, q.Stop(t.Context()))
		must(t, q.Stop(t.Context()))
		if !slices.Equal(done, []int{1, 2}) || q.Add(3) || q.DroppedCount() != 1 {
			t.Errorf("handled %v, %d dropped", done, q.DroppedCount())
		}
		must(t, q.Start(t.Context()))
	})
	t.Run("BUF-3 Stop's deadline cancels the work and says how many requests were left", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			q := queue.New(queue.Config{Timeout: time.Hour, Logger: slog.New(slog.DiscardHandler)}, id, func(ctx context.Context, _ int) error {
				<-ctx.Done()
				return ctx.Err()
			})
			for n := range 3 {
				q.Add(n)
			}
			must(t, q.Start(t.Context()))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := q.Stop(ctx)
			if !errors.Is(err, queue.ErrLeft) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "2 requests") {
				t.Errorf("error %v", err)
			}
		})
	})
	t.Run("DRP-2 failures, panics and timeouts are counted and the queue goes on", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			handled := 0
			q := queue.New(queue.Config{Timeout: time.Second, Logger: slog.New(slog.DiscardHandler)}, id, func(ctx context.Context, n int) error {
				switch n {
				case 0:
					return errors.New("down")
				case 1:
					panic("bug")
				case 2:
					<-ctx.Done()
					return ctx.Err()
				}
				handled++
				return nil
			})
			must(t, q.Start(t.Context()))
			for n := range 4 {
				q.Add(n)
			}
			must(t, q.Stop(t.Context()))
			if q.FailedCount() != 3 || handled != 1 {
				t.Errorf("%d failed, %d handled", q.FailedCount(), handled)
			}
		})
	})
	t.Run("DRP-2 a queue that was never started drops what waits", func(t *testing.T) {
		t.Parallel()
		q := queue.New(queue.Config{}, id, func(context.Context, int) error { return nil })
		q.Add(1)
		must(t, q.Stop(t.Context()))
		if q.DroppedCount() != 1 {
			t.Errorf("%d dropped", q.DroppedCount())
		}
	})
}

func Example() {
	ctx := context.Background()
	q := queue.New(queue.Config{Size: 10}, func(s string) string { return s }, func(_ context.Context, s string) error {
		fmt.Println("handled", s)
		return nil
	})
	if err := q.Start(ctx); err != nil {
		fmt.Println(err)
	}
	q.Add("a")
	if err := q.Stop(ctx); err != nil {
		fmt.Println(err)
	}
	// Output: handled a
}
