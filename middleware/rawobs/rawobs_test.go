package rawobs_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/adkmemory/adkmemory/middleware/rawobs"
)

func entry(i int) rawobs.Entry {
	return rawobs.Entry{CallID: fmt.Sprint("call-", i), Tool: "search", Text: fmt.Sprint("output ", i)}
}

func pushed(size, n int) *rawobs.Buffer {
	b := rawobs.New(size, slog.New(slog.DiscardHandler))
	for i := 1; i <= n; i++ {
		b.Push(entry(i))
	}
	return b
}

func texts(entries []rawobs.Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.Text)
	}
	return out
}

func wantTexts(t *testing.T, got []rawobs.Entry, first, last int) {
	t.Helper()
	var want []string
	for i := first; i <= last; i++ {
		want = append(want, entry(i).Text)
	}
	if !slices.Equal(texts(got), want) {
		t.Errorf("got %q, want %q", texts(got), want)
	}
}

func TestBuffer(t *testing.T) {
	t.Parallel()
	t.Run("RAW-1 the newest five are kept, oldest first", func(t *testing.T) {
		t.Parallel()
		wantTexts(t, pushed(0, 7).All(), 3, 7)
		wantTexts(t, pushed(-1, 7).All(), 3, 7)
	})
	t.Run("RAW-1 the size is configurable at construction", func(t *testing.T) {
		t.Parallel()
		wantTexts(t, pushed(3, 7).All(), 5, 7)
		wantTexts(t, pushed(10, 7).All(), 1, 7)
	})
	t.Run("RAW-2 with fewer, all", func(t *testing.T) {
		t.Parallel()
		wantTexts(t, pushed(0, 3).All(), 1, 3)
		if got := pushed(0, 0).All(); got != nil {
			t.Errorf("an empty buffer holds %v", got)
		}
	})
	t.Run("RAW-3 byte for byte what was pushed", func(t *testing.T) {
		t.Parallel()
		b := rawobs.New(0, nil)
		want := []rawobs.Entry{
			{CallID: "1", Tool: "a", Text: strings.Repeat("long ", 1<<18)},
			{CallID: "2", Tool: "b", Text: "\x00\xff \r\n\ttrailing space \n"},
			{CallID: "", Tool: "", Text: ""},
			{CallID: "4", Tool: "d", Text: "안녕 你好" + rawobs.Separator + "forged"},
		}
		for _, e := range want {
			b.Push(e)
		}
		if got := b.All(); !slices.Equal(got, want) {
			t.Error("entries differ from what was pushed")
		}
		if got, want := b.ContextString(), strings.Join(texts(want), "\n---OBSERVATION---\n"); got != want {
			t.Error("context string differs from what was pushed")
		}
	})
	t.Run("RAW-4 Clear empties it", func(t *testing.T) {
		t.Parallel()
		b := pushed(0, 7)
		b.Clear()
		if got := b.All(); len(got) != 0 || b.ContextString() != "" {
			t.Errorf("still holds %v", got)
		}
		b.Push(entry(8))
		wantTexts(t, b.All(), 8, 8)
	})
	t.Run("RAW-5 the context string joins them, deterministically", func(t *testing.T) {
		t.Parallel()
		want := "output 1\n---OBSERVATION---\noutput 2\n---OBSERVATION---\noutput 3"
		for range 3 {
			if got := pushed(0, 3).ContextString(); got != want {
				t.Errorf("got %q", got)
			}
		}
		if got := pushed(0, 1).ContextString(); got != "output 1" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("RAW-6 All returns a copy", func(t *testing.T) {
		t.Parallel()
		b := pushed(0, 5)
		got := b.All()
		got[0].Text = "changed"
		b.Push(entry(6))
		wantTexts(t, b.All(), 2, 6)
		wantTexts(t, got[1:], 2, 5)
	})
	t.Run("RAW-10 a size below 3 is allowed and warned about once", func(t *testing.T) {
		t.Parallel()
		for size, want := range map[int]int{0: 0, 1: 1, 2: 1, 3: 0} {
			var log bytes.Buffer
			b := rawobs.New(size, slog.New(slog.NewTextHandler(&log, nil)))
			b.Push(entry(1))
			b.Push(entry(2))
			b.Push(entry(3))
			if got := strings.Count(log.String(), "level=WARN"); got != want {
				t.Errorf("size %d: %d warnings, want %d", size, got, want)
			}
			if size > 0 && len(b.All()) != size {
				t.Errorf("size %d: holds %d", size, len(b.All()))
			}
		}
		rawobs.New(1, nil) // warns through slog.Default()
	})
	t.Run("RAW-1 concurrent use", func(t *testing.T) {
		t.Parallel()
		b := rawobs.New(0, nil)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for j := range 100 {
					b.Push(entry(i*100 + j))
					if n := len(b.All()); n == 0 || n > 5 {
						t.Errorf("holds %d", n)
					}
					_ = b.ContextString()
				}
			})
		}
		wg.Wait()
	})
}

func TestAgentContext(t *testing.T) {
	t.Parallel()
	record := func(c *rawobs.AgentContext, first, last int) {
		for i := first; i <= last; i++ {
			e := entry(i)
			c.RecordObservation(e.CallID, e.Tool, e.Text)
		}
	}
	t.Run("RAW-7 over three agent turns with seven pushes it holds the last five", func(t *testing.T) {
		t.Parallel()
		r := rawobs.NewRegistry(rawobs.Config{})
		record(r.Session("app/user/s"), 1, 2)
		record(r.Session("app/user/s"), 3, 5)
		record(r.Session("app/user/s"), 6, 7)
		c := r.Session("app/user/s")
		wantTexts(t, c.RecentObservations(), 3, 7)
		if got := c.RecentObservations()[0]; got != entry(3) {
			t.Errorf("got %+v", got)
		}
		if got := strings.Count(c.ContextString(), rawobs.Separator); got != 4 {
			t.Errorf("%d separators", got)
		}
	})
	t.Run("RAW-7 sessions and registries see only their own", func(t *testing.T) {
		t.Parallel()
		r, other := rawobs.NewRegistry(rawobs.Config{}), rawobs.NewRegistry(rawobs.Config{})
		record(r.Session("a"), 1, 2)
		record(r.Session("b"), 3, 3)
		wantTexts(t, r.Session("a").RecentObservations(), 1, 2)
		wantTexts(t, r.Session("b").RecentObservations(), 3, 3)
		if r.Session("c").RecentObservations() != nil || other.Session("a").RecentObservations() != nil {
			t.Error("a stranger sees outputs")
		}
		r.Session("a").Clear()
		r.Session("c").Clear()
		if r.Session("a").RecentObservations() != nil || r.Len() != 1 {
			t.Error("Clear left something, or cleared too much")
		}
	})
	t.Run("RAW-10 a registry warns once about a small size", func(t *testing.T) {
		t.Parallel()
		var log bytes.Buffer
		r := rawobs.NewRegistry(rawobs.Config{Size: 2, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		record(r.Session("a"), 1, 3)
		record(r.Session("b"), 1, 3)
		wantTexts(t, r.Session("a").RecentObservations(), 2, 3)
		if got := strings.Count(log.String(), "level=WARN"); got != 1 {
			t.Errorf("%d warnings", got)
		}
	})
	t.Run("SEC-4 past the session limit the one used longest ago is forgotten", func(t *testing.T) {
		t.Parallel()
		r := rawobs.NewRegistry(rawobs.Config{MaxSessions: 2})
		record(r.Session("a"), 1, 1)
		record(r.Session("b"), 2, 2)
		_ = r.Session("a").RecentObservations()
		record(r.Session("c"), 3, 3)
		if r.Len() != 2 || r.Session("b").RecentObservations() != nil {
			t.Error("b is still remembered")
		}
		wantTexts(t, r.Session("a").RecentObservations(), 1, 1)
	})
	t.Run("SEC-4 past the byte limit whole sessions are forgotten, never the one just written", func(t *testing.T) {
		t.Parallel()
		r := rawobs.NewRegistry(rawobs.Config{MaxBytes: 100, Size: 3})
		r.Session("a").RecordObservation("1", "t", strings.Repeat("x", 60))
		r.Session("b").RecordObservation("2", "t", strings.Repeat("y", 60))
		if r.Len() != 1 || r.Session("a").RecentObservations() != nil {
			t.Error("a is still remembered")
		}
		for range 10 { // what leaves a full buffer gives its bytes back
			r.Session("b").RecordObservation("", "", strings.Repeat("y", 10))
		}
		r.Session("c").RecordObservation("", "", strings.Repeat("z", 70))
		if r.Len() != 2 {
			t.Error("the bytes of outputs that left still count")
		}
		r.Session("d").RecordObservation("", "", strings.Repeat("z", 1000))
		if got := r.Session("d").RecentObservations(); r.Len() != 1 || len(got) != 1 || len(got[0].Text) != 1000 {
			t.Errorf("%d sessions, d holds %d outputs", r.Len(), len(got))
		}
	})
	t.Run("RAW-7 concurrent use", func(t *testing.T) {
		t.Parallel()
		r := rawobs.NewRegistry(rawobs.Config{MaxSessions: 3})
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for j := range 100 {
					c := r.Session(fmt.Sprint(j % 5))
					record(c, i*100+j, i*100+j)
					_ = c.RecentObservations()
				}
			})
		}
		wg.Wait()
		if r.Len() != 3 {
			t.Errorf("%d sessions", r.Len())
		}
	})
}

func TestImports(t *testing.T) {
	t.Parallel()
	t.Run("RAW-10 nothing outside the standard library is imported", func(t *testing.T) {
		t.Parallel()
		out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{join .Imports "\n"}}`, ".").Output()
		if err != nil {
			t.Skip("the go command is not at hand:", err)
		}
		for path := range strings.Lines(string(out)) {
			if strings.Contains(path, ".") {
				t.Errorf("imports %s", path)
			}
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	r := rawobs.NewRegistry(rawobs.Config{})
	c := r.Session("app/user/session")
	b.ReportAllocs()
	for b.Loop() {
		c.RecordObservation("call", "search", "output")
	}
}
