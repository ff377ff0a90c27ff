package main

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := run(t.Context(), []string{"-db", filepath.Join(t.TempDir(), "agent.db")}, &b); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	out := b.String()
	counts := regexp.MustCompile(`session +(\d+) messages · in the archive +(\d+) · observations (\d+) · reflections (\d+)`).FindAllStringSubmatch(out, -1)
	if len(counts) != len(lines) {
		t.Fatalf("%d turns are shown\n%s", len(counts), out)
	}
	t.Run("CMP-1 what is noted leaves the session and stays in the archive", func(t *testing.T) {
		t.Parallel()
		last := counts[len(counts)-1]
		inSession, err1 := strconv.Atoi(last[1])
		archived, err2 := strconv.Atoi(last[2])
		if err1 != nil || err2 != nil || inSession >= 2*len(lines) || archived < len(lines) {
			t.Errorf("in the end: %s", last[0])
		}
	})
	t.Run("REF-1 notes are condensed", func(t *testing.T) {
		t.Parallel()
		if !strings.Contains(out, "reflections 1") {
			t.Error("no reflection is shown")
		}
	})
	t.Run("MEM-2 the exact words are found", func(t *testing.T) {
		t.Parallel()
		if !strings.Contains(out, "user, message 2: The serial number on the frame is WK4471902.") {
			t.Errorf("got\n%s", out)
		}
	})
	t.Run("STO-3 a forgotten customer is gone", func(t *testing.T) {
		t.Parallel()
		if !strings.Contains(out, "The same search finds 0 messages.") {
			t.Error("something is left")
		}
	})
}
