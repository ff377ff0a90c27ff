package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// showJSON writes one object a line.
func showJSON(w io.Writer, r Result) error { return json.NewEncoder(w).Encode(r) }

const header = "session                 turns  calls    history       sent   share  notes  kept facts (lead)"

func showLine(w io.Writer, r Result) {
	name := r.Session
	if len(name) > 22 {
		name = name[:21] + "…"
	}
	_, _ = fmt.Fprintf(w, "%-22s %6d %6d %10s %10s %6.1f%% %6s  %5.1f%% (%.1f%%)%s\n", name, r.Turns, r.ModelCalls,
		thousands(r.HistoryTokens), thousands(r.SentTokens), 100*share(r.SentTokens, r.HistoryTokens),
		strconv.Itoa(r.Observations)+"+"+strconv.Itoa(r.Reflections), 100*r.FactRetention, 100*r.FactRetentionLead,
		faults(r))
}

func faults(r Result) string {
	var list []string
	for _, f := range []struct {
		n    int
		what string
	}{
		{r.UncoveredMessages, "uncovered"}, {r.BrokenPairs, "broken pairs"},
		{r.DroppedHardLimit, "dropped"}, {r.NotesLeftOut, "notes left out"},
	} {
		if f.n > 0 {
			list = append(list, fmt.Sprintf("%d %s", f.n, f.what))
		}
	}
	if list == nil {
		return ""
	}
	return "  ! " + strings.Join(list, ", ")
}

func showTotal(w io.Writer, r Result) {
	verdict := "Every message was sent, or stood in a note of the same prompt. No call lost its response."
	if f := faults(r); f != "" {
		verdict = "NOT everything was covered:" + f
	}
	_, _ = fmt.Fprintf(w, `
The whole history would have cost %s tokens; %s were sent, %.1f %%.
The largest prompt was %s tokens where the history had grown to %s.
%d observations and %d reflections (up to generation %d) keep %.1f %% of the names, numbers and dates
of what they stand for; the first sentences at the same length would keep %.1f %%.
%.1f %% of a prompt is the same prefix as before. The wrapper took %d µs (median), %d µs (99 %%).
%s
`,
		thousands(r.HistoryTokens), thousands(r.SentTokens), 100*share(r.SentTokens, r.HistoryTokens),
		thousands(r.PeakSentTokens), thousands(r.PeakHistoryTokens),
		r.Observations, r.Reflections, r.MaxGeneration, 100*r.FactRetention, 100*r.FactRetentionLead,
		100*r.PrefixStableRatio, r.WrapperP50Micros, r.WrapperP99Micros, verdict)
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// progressOn returns a function that draws progress on a terminal, and one that wipes it; on anything else than a
// terminal both do nothing.
func progressOn(w io.Writer) (draw func(d drama, done int), wipe func()) {
	f, ok := w.(*os.File)
	if !ok {
		return func(drama, int) {}, func() {}
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func(drama, int) {}, func() {}
	}
	draw = func(d drama, done int) {
		if done%10 == 0 || done == d.turns {
			_, _ = fmt.Fprintf(w, "\r\x1b[K%s: turn %d of %d", d.session, done, d.turns)
		}
	}
	return draw, func() { _, _ = fmt.Fprint(w, "\r\x1b[K") }
}
