package main

import (
	"slices"
	"time"

	"google.golang.org/adk/v2/session"
)

// Result is what was measured of one session, or of all of them. README.md says what each field means.
type Result struct {
	Session           string  `json:"session"`
	Turns             int     `json:"turns"`
	ModelCalls        int     `json:"model_calls"`
	HistoryTokens     int     `json:"history_tokens"`
	SentTokens        int     `json:"sent_tokens"`
	PeakHistoryTokens int     `json:"peak_history_tokens"`
	PeakSentTokens    int     `json:"peak_sent_tokens"`
	Observations      int     `json:"observations"`
	Reflections       int     `json:"reflections"`
	MaxGeneration     int     `json:"max_generation"`
	UncoveredMessages int     `json:"uncovered_messages"`
	NotesLeftOut      int     `json:"notes_left_out"`
	BrokenPairs       int     `json:"broken_pairs"`
	DroppedHardLimit  int     `json:"dropped_hard_limit"`
	PrefixStableRatio float64 `json:"prefix_stable_ratio"`
	FactRetention     float64 `json:"fact_retention"`
	FactRetentionLead float64 `json:"fact_retention_lead"`
	WrapperP50Micros  int64   `json:"wrapper_p50_us"`
	WrapperP99Micros  int64   `json:"wrapper_p99_us"`
	stable            []float64
	wrapper           []time.Duration
	facts, held, lead int
}

func newResult(d drama, p *probe, events []*session.Event, book *noteBook, dropped int) Result {
	r := Result{
		Session:           d.session,
		Turns:             d.turns,
		ModelCalls:        p.sums.calls,
		HistoryTokens:     p.sums.history,
		SentTokens:        p.sums.sent,
		PeakHistoryTokens: p.sums.peakHistory,
		PeakSentTokens:    p.sums.peakSent,
		UncoveredMessages: p.sums.uncovered,
		NotesLeftOut:      p.sums.leftOut,
		BrokenPairs:       p.sums.broken,
		DroppedHardLimit:  dropped,
		stable:            p.sums.stable,
		wrapper:           p.sums.wrapper,
	}
	r.Observations, r.Reflections, r.MaxGeneration = countNotes(book)
	r.facts, r.held, r.lead = keptFacts(events, book)
	r.finish()
	return r
}

// add sums a session's result up: counts add, peaks and the generation are maxima.
func (r *Result) add(s Result) {
	r.Turns += s.Turns
	r.ModelCalls += s.ModelCalls
	r.HistoryTokens += s.HistoryTokens
	r.SentTokens += s.SentTokens
	r.PeakHistoryTokens = max(r.PeakHistoryTokens, s.PeakHistoryTokens)
	r.PeakSentTokens = max(r.PeakSentTokens, s.PeakSentTokens)
	r.Observations += s.Observations
	r.Reflections += s.Reflections
	r.MaxGeneration = max(r.MaxGeneration, s.MaxGeneration)
	r.UncoveredMessages += s.UncoveredMessages
	r.NotesLeftOut += s.NotesLeftOut
	r.BrokenPairs += s.BrokenPairs
	r.DroppedHardLimit += s.DroppedHardLimit
	r.stable = append(r.stable, s.stable...)
	r.wrapper = append(r.wrapper, s.wrapper...)
	r.facts += s.facts
	r.held += s.held
	r.lead += s.lead
}

// finish computes the shares and percentiles over everything that was added.
func (r *Result) finish() {
	r.FactRetention = share(r.held, r.facts)
	r.FactRetentionLead = share(r.lead, r.facts)
	var sum float64
	for _, s := range r.stable {
		sum += s
	}
	if n := len(r.stable); n > 0 {
		r.PrefixStableRatio = sum / float64(n)
	}
	waits := slices.Sorted(slices.Values(r.wrapper))
	r.WrapperP50Micros = percentile(waits, 50).Microseconds()
	r.WrapperP99Micros = percentile(waits, 99).Microseconds()
}

func share(part, all int) float64 {
	if all == 0 {
		return 0
	}
	return float64(part) / float64(all)
}

// percentile is the smallest value that at least p percent of the sorted values do not exceed.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*p+99)/100-1]
}
