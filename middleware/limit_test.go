package middleware_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/adkmemory/adkmemory/middleware/observer"
)

func gated(gate <-chan struct{}) func(context.Context, observer.Request) (observer.Note, error) {
	return func(ctx context.Context, req observer.Request) (observer.Note, error) {
		select {
		case <-gate:
			return brief(ctx, req)
		case <-ctx.Done():
			return observer.Note{}, ctx.Err()
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	small := with(func(c *appConfig) {
		c.cfg.MessageTokenThreshold, c.cfg.MaxMessageTokenBudget, c.cfg.HardMessageTokenLimit = 200, 600, 1800
	})

	t.Run("BUD-7 un-observed messages make the window grow past its budget, up to the hard limit", func(t *testing.T) {
		t.Parallel()
		a, open := blocked(t, small)
		defer open()
		peak := 0
		for i := 0; ; i++ {
			// The next turn adds one fact and one answer, about 75 tokens.
			if sent := peak; sent > 1800-160 {
				break
			}
			a.say(fact(i))
			peak = sentTokens(a.llm.last(t))
			if got := len(a.llm.last(t).Contents); got != 2*i+1 {
				t.Fatalf("turn %d: %d contents were sent, though no note covers any", i, got)
			}
		}
		if s := a.mem.Stats(); peak < 600 || s.Waits != 0 || s.DroppedHardLimit != 0 {
			t.Errorf("peak %d, stats %+v", peak, s)
		}
	})

	t.Run("BUD-7 BUF-1 then a turn waits for a note", func(t *testing.T) {
		t.Parallel()
		a, open := blocked(t, small, with(func(c *appConfig) { c.cfg.MaxWait = time.Minute }))
		go func() {
			for a.mem.Stats().Waits == 0 {
				time.Sleep(time.Millisecond)
			}
			open()
		}()
		for i := range 40 {
			a.say(fact(i))
			if got := sentTokens(a.llm.last(t)); got > 1800 {
				t.Fatalf("%d tokens were sent", got)
			}
		}
		if s := a.mem.Stats(); s.Waits == 0 || s.DroppedHardLimit != 0 {
			t.Errorf("stats %+v", s)
		}
	})

	t.Run("BUD-7 then the oldest un-observed messages are dropped, counted and logged once, and observed later all the same", func(t *testing.T) {
		t.Parallel()
		var log bytes.Buffer
		a, open := blocked(t, small, with(func(c *appConfig) {
			c.cfg.MaxWait = time.Millisecond
			c.deps.Logger = slog.New(slog.NewTextHandler(&lockedWriter{w: &log}, nil))
		}))
		const turns = 40
		for i := range turns {
			a.say(fact(i))
		}
		req := a.llm.last(t)
		if got := sentTokens(req); got > 1800+80 {
			t.Errorf("%d tokens were sent", got)
		}
		texts := textsOf(req)
		if texts[len(texts)-1] != fact(turns-1) || slices.Contains(texts, fact(0)) || !slices.Contains(texts, fact(turns-5)) {
			t.Error("not the oldest were dropped")
		}
		dropped := a.mem.Stats().DroppedHardLimit
		if dropped == 0 || strings.Count(log.String(), "hardMessageTokenLimit") != 1 {
			t.Errorf("%d dropped, logged %d times", dropped, strings.Count(log.String(), "hardMessageTokenLimit"))
		}
		open()
		a.settle()
		a.say("Enough.")
		a.settle()
		o := a.snapshot().Observations
		if len(o) == 0 || o[0].Range.Start != 0 || o[len(o)-1].Range.End < 2*turns-10 {
			t.Errorf("%d observations", len(o))
		}
		for i := 1; i < len(o); i++ {
			if o[i].Range.Start != o[i-1].Range.End+1 {
				t.Errorf("a gap before message %d", o[i].Range.Start)
			}
		}
	})

	t.Run("BUD-7 a turn at the hard limit ends its wait with its context", func(t *testing.T) {
		t.Parallel()
		a, open := blocked(t, small, with(func(c *appConfig) { c.cfg.MaxWait = time.Hour }))
		defer open()
		var history []string
		for i := range 60 {
			history = append(history, fact(i))
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for a.mem.Stats().Waits == 0 {
				time.Sleep(time.Millisecond)
			}
			cancel()
		}()
		sendContext(ctx, t, a.mem, a.key, history...)
		if a.mem.Stats().Waits != 1 {
			t.Error("the turn did not wait")
		}
	})

	t.Run("BUD-4 once observed, messages leave oldest first, down to the budget, and the newest stay", func(t *testing.T) {
		t.Parallel()
		a := newApp(t, talker(), small)
		for i := range 60 {
			a.say(fact(i))
			a.settle()
			req := a.llm.last(t)
			if got := sentTokens(req); got > 600+200+80 { // the budget, what was not observed yet, and the turn itself
				t.Fatalf("turn %d: %d tokens were sent", i, got)
			}
			texts := textsOf(req)
			if texts[len(texts)-1] != fact(i) || i > 2 && !slices.Contains(texts, fact(i-2)) {
				t.Fatalf("turn %d: the newest messages are missing: %.40q", i, texts)
			}
			if req.Contents[0].Role != "user" {
				t.Fatalf("turn %d: the window begins with %q", i, req.Contents[0].Role)
			}
		}
		if s := a.mem.Stats(); s.Waits != 0 || s.DroppedHardLimit != 0 {
			t.Errorf("stats %+v", s)
		}
	})
}
