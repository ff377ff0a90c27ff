package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/adkmemory/adkmemory/backends/pgtest"
	"github.com/adkmemory/adkmemory/examples/internal/transcript"
	"github.com/adkmemory/adkmemory/middleware"
)

func TestMain(m *testing.M) {
	code := pgtest.Main(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// results runs replay with -json and returns the sessions' results and the total.
func results(t *testing.T, args ...string) ([]Result, Result) {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), append(args, "-json"), &out, io.Discard); err != nil {
		t.Fatalf("replay %s: %v", strings.Join(args, " "), err)
	}
	var all []Result
	for decoder := json.NewDecoder(&out); ; {
		var r Result
		if err := decoder.Decode(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	last := len(all) - 1
	if last < 0 || all[last].Session != "total" {
		t.Fatalf("the last object is not the total: %+v", all)
	}
	return all[:last], all[last]
}

// data is the path of a file with real conversations; the test is skipped where it is not there.
func data(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "data", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no real conversations here: %v", err)
	}
	return path
}

// small writes a transcript that is just long enough for messages to leave the window.
func small(t *testing.T) string {
	t.Helper()
	w := newWriter("small")
	w.talk(100)
	path := filepath.Join(t.TempDir(), "small.jsonl")
	if err := writeTranscript(path, []transcript.Conversation{w.conversation}); err != nil {
		t.Fatal(err)
	}
	return path
}

func skipLong(t *testing.T) {
	t.Helper()
	if testing.Short() || raceEnabled {
		t.Skip("a long conversation; not with -short or -race")
	}
}

func wantCovered(t *testing.T, r Result) {
	t.Helper()
	if r.UncoveredMessages+r.BrokenPairs+r.DroppedHardLimit+r.NotesLeftOut != 0 {
		t.Errorf("%s: uncovered %d, broken pairs %d, dropped %d, notes left out %d; want none", r.Session,
			r.UncoveredMessages, r.BrokenPairs, r.DroppedHardLimit, r.NotesLeftOut)
	}
}

func TestReplayOfRealConversations(t *testing.T) {
	t.Parallel()
	tests := []struct {
		file  string
		share float64 // of the history's tokens that may be sent when the sessions are joined
	}{
		{"tau_airline.jsonl", 0.45},
		{"locomo.jsonl", 0.3},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			path := data(t, tt.file)
			t.Run("BUD-7 each session alone is covered", func(t *testing.T) {
				t.Parallel()
				skipLong(t)
				_, total := results(t, "-transcript", path)
				wantCovered(t, total)
			})
			t.Run("BUD-4 BUD-7 joined it is covered and cheap", func(t *testing.T) {
				t.Parallel()
				skipLong(t)
				_, total := results(t, "-transcript", path, "-concat", "25", "-backend", "sqlite")
				wantCovered(t, total)
				if got := share(total.SentTokens, total.HistoryTokens); got >= tt.share {
					t.Errorf("sent %.3f of the history's tokens, want less than %.2f", got, tt.share)
				}
				if total.Observations == 0 || total.FactRetention <= total.FactRetentionLead {
					t.Errorf("%d observations keep %.3f of the facts, the lead %.3f", total.Observations,
						total.FactRetention, total.FactRetentionLead)
				}
			})
			t.Run("BUF-1 BUD-7 a slow Observer changes nothing of that", func(t *testing.T) {
				t.Parallel()
				skipLong(t)
				_, total := results(t, "-transcript", path, "-concat", "25", "-observer-latency", "100ms")
				wantCovered(t, total)
				if total.Observations == 0 {
					t.Error("no observation was written while it ran")
				}
			})
		})
	}
}

func TestReplayOfGeneratedConversations(t *testing.T) {
	t.Parallel()
	t.Run("BUD-7 MEM-3 all that is hard is covered", func(t *testing.T) {
		t.Parallel()
		sessions, total := results(t, "-generate")
		wantCovered(t, total)
		if len(sessions) != 8 {
			t.Errorf("%d sessions", len(sessions))
		}
	})
	t.Run("CTX-9 the cache-friendly layout keeps the prefix", func(t *testing.T) {
		t.Parallel()
		_, total := results(t, "-generate", "-concat", "5", "-set", "layout=cacheFriendly")
		wantCovered(t, total)
		if total.PrefixStableRatio < 0.85 {
			t.Errorf("prefix_stable_ratio = %.3f", total.PrefixStableRatio)
		}
	})
	t.Run("CFG-2 switched off, everything is sent", func(t *testing.T) {
		t.Parallel()
		_, total := results(t, "-generate", "-set", "enabled=false")
		if total.SentTokens != total.HistoryTokens || total.Observations != 0 {
			t.Errorf("%+v", total)
		}
	})
	t.Run("written to a file they replay the same", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "generated.jsonl")
		sessions, _ := results(t, "-generate", "-transcript", path)
		again, _ := results(t, "-transcript", path)
		for i, r := range again {
			if r.Turns != sessions[i].Turns || r.HistoryTokens != sessions[i].HistoryTokens {
				t.Errorf("session %s: %d turns and %d tokens, then %d and %d", r.Session,
					sessions[i].Turns, sessions[i].HistoryTokens, r.Turns, r.HistoryTokens)
			}
		}
		if len(again) != 5 {
			t.Errorf("%d sessions in the file", len(again))
		}
	})
	t.Run("the hard limit's drops are counted and uncovered", func(t *testing.T) {
		t.Parallel()
		_, total := results(t, "-generate", "-observer-latency", "1h", "-set", "maxMessageTokenBudget=1000",
			"-set", "hardMessageTokenLimit=1000", "-set", "maxWait=1ms", "-set", "observerTimeout=10ms")
		if total.DroppedHardLimit == 0 || total.UncoveredMessages == 0 {
			t.Errorf("dropped %d, uncovered %d, want both", total.DroppedHardLimit, total.UncoveredMessages)
		}
	})
}

func TestJSONFields(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := showJSON(&out, Result{}); err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(out.Bytes(), &fields); err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(`session turns model_calls history_tokens sent_tokens peak_history_tokens peak_sent_tokens
		observations reflections max_generation uncovered_messages notes_left_out broken_pairs dropped_hard_limit
		prefix_stable_ratio fact_retention fact_retention_lead wrapper_p50_us wrapper_p99_us`)
	for _, name := range want {
		if _, ok := fields[name]; !ok {
			t.Errorf("no field %s", name)
		}
	}
	if len(fields) != len(want) {
		t.Errorf("%d fields, want %d", len(fields), len(want))
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	databases := map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "memory.db") },
		"postgres": func(t *testing.T) string { return pgtest.DSN(t) },
	}
	for backend, dsn := range databases {
		t.Run("OPS-2 one database is replayed into twice: "+backend, func(t *testing.T) {
			t.Parallel()
			args := []string{"-transcript", small(t), "-backend", backend, "-dsn", dsn(t)}
			results(t, args...)
			_, total := results(t, args...)
			wantCovered(t, total)
			if total.Observations == 0 {
				t.Error("no observation was written")
			}
		})
	}
	t.Run("for people", func(t *testing.T) {
		t.Parallel()
		var out bytes.Buffer
		if err := run(t.Context(), []string{"-transcript", small(t)}, &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "Every message was sent, or stood in a note of the same prompt.") {
			t.Errorf("no verdict in:\n%s", out.String())
		}
	})
	faults := map[string][]string{
		"-transcript is required":    nil,
		"unexpected argument":        {"-generate", "x"},
		"-concat must be at least 1": {"-generate", "-concat", "0"},
		"nosuchfield":                {"-generate", "-set", "nosuchfield=1"},
		"want key=value":             {"-generate", "-set", "x"},
		"-backend \"paper\"":         {"-generate", "-backend", "paper"},
		"no such file":               {"-transcript", "/nonexistent"},
		"messageTokenThreshold":      {"-generate", "-set", "messageTokenThreshold=-1"},
	}
	for want, args := range faults {
		t.Run("refuses: "+want, func(t *testing.T) {
			t.Parallel()
			err := run(t.Context(), args, io.Discard, io.Discard)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error = %v", err)
			}
		})
	}
	t.Run("CFG-5 faults of the configuration are the library's", func(t *testing.T) {
		t.Parallel()
		err := run(t.Context(), []string{"-generate", "-set", "workers=-1"}, io.Discard, io.Discard)
		if !errors.Is(err, middleware.ErrInvalidConfig) {
			t.Errorf("error = %v", err)
		}
	})
	t.Run("a cancelled run ends", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := run(ctx, []string{"-generate", "-backend", "sqlite"}, io.Discard, io.Discard); err == nil {
			t.Error("no error")
		}
	})
}

func TestConfigure(t *testing.T) {
	t.Parallel()
	cfg, err := configure(settings{
		"messageTokenThreshold": "7", "maxWait": "3s", "archive": "false", "appNames": "a,b", "layout": "cacheFriendly",
	})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.MessageTokenThreshold != 7 || cfg.MaxWait.Seconds() != 3 || *cfg.Archive || !cfg.Enabled ||
		!slices.Equal(cfg.AppNames, []string{"a", "b"}) || cfg.Layout != middleware.LayoutCacheFriendly {
		t.Errorf("%+v", cfg)
	}
}

func Example() {
	w := newWriter("port")
	w.talk(100)
	path := filepath.Join(os.TempDir(), fmt.Sprintf("replay-example-%d.jsonl", os.Getpid()))
	defer func() { _ = os.Remove(path) }()
	if err := writeTranscript(path, []transcript.Conversation{w.conversation}); err != nil {
		fmt.Println(err)
		return
	}
	var out bytes.Buffer
	if err := run(context.Background(), []string{"-transcript", path, "-json"}, &out, io.Discard); err != nil {
		fmt.Println(err)
		return
	}
	var r Result
	if err := json.NewDecoder(&out).Decode(&r); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Session, r.Turns, r.ModelCalls, r.UncoveredMessages, r.BrokenPairs)
	// Output: port 100 100 0 0
}
