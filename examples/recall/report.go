package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

// question is a line of the file with questions.
type question struct {
	Session     string   `json:"session"`
	Question    string   `json:"question"`
	Adversarial bool     `json:"adversarial"`
	Category    string   `json:"category"`
	Evidence    []string `json:"evidence"` // ids of the messages that answer it
}

// readQuestions returns the questions that have an answer in their conversation.
func readQuestions(path string) ([]question, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var out []question
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var q question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, n, err)
		}
		slices.Sort(q.Evidence)
		if q.Evidence = slices.Compact(q.Evidence); !q.Adversarial && len(q.Evidence) > 0 {
			out = append(out, q)
		}
	}
	return out, lines.Err()
}

// report is the result: the share of the evidence among the first k results, averaged over the questions.
type report struct {
	queries    int
	recall     map[int]float64
	mrr        float64
	p50, p99   time.Duration
	categories map[string]float64 // recall@10
}

// MarshalJSON writes the numbers under the names that DESIGN gives them, and the categories under "categories".
func (r report) MarshalJSON() ([]byte, error) {
	out := map[string]any{
		"queries": r.queries, "mrr": r.mrr, "p50_us": r.p50.Microseconds(), "p99_us": r.p99.Microseconds(), "categories": r.categories,
	}
	for k, v := range r.recall {
		out[fmt.Sprintf("recall@%d", k)] = v
	}
	return json.Marshal(out)
}

func (r report) show(w io.Writer) error {
	text := fmt.Sprintf("%d questions\n", r.queries)
	for _, k := range slices.Sorted(maps.Keys(r.recall)) {
		text += fmt.Sprintf("recall@%-4d %.3f\n", k, r.recall[k])
	}
	text += fmt.Sprintf("mrr         %.3f\np50         %v\np99         %v\n", r.mrr, r.p50, r.p99)
	for _, c := range slices.Sorted(maps.Keys(r.categories)) {
		text += fmt.Sprintf("recall@10 of %-12s %.3f\n", c, r.categories[c])
	}
	_, err := io.WriteString(w, text)
	return err
}

// categoryDepth is the k of the recall of each category.
const categoryDepth = 10

// ask searches for every question in its own session.
func ask(ctx context.Context, l *library, questions []question, ks []int) (report, error) {
	r := report{queries: len(questions), recall: map[int]float64{}, categories: map[string]float64{}}
	for _, k := range ks {
		r.recall[k] = 0
	}
	perCategory := map[string]int{}
	var times []time.Duration
	for _, q := range questions {
		begin := time.Now()
		found, err := l.search.Search(ctx, backends.SearchQuery{
			App: app, User: user, Session: q.Session, Kinds: []backends.Kind{backends.KindMessage}, Text: q.Question,
			Limit: max(categoryDepth, ks[len(ks)-1]),
		})
		if err != nil {
			return r, err
		}
		times = append(times, time.Since(begin))
		for _, k := range ks {
			r.recall[k] += share(q, found, k)
		}
		r.categories[q.Category] += share(q, found, categoryDepth)
		perCategory[q.Category]++
		if first := slices.IndexFunc(found, func(f backends.Found) bool { return slices.Contains(q.Evidence, f.ID) }); first >= 0 {
			r.mrr += 1 / float64(first+1)
		}
	}
	if len(questions) == 0 {
		return r, nil
	}
	for k := range r.recall {
		r.recall[k] /= float64(len(questions))
	}
	for c, n := range perCategory {
		r.categories[c] /= float64(n)
	}
	r.mrr /= float64(len(questions))
	slices.Sort(times)
	r.p50, r.p99 = times[len(times)/2], times[len(times)*99/100]
	return r, nil
}

// share is the part of a question's evidence that is among the first k results.
func share(q question, found []backends.Found, k int) float64 {
	n := 0
	for _, f := range found[:min(k, len(found))] {
		if slices.Contains(q.Evidence, f.ID) {
			n++
		}
	}
	return float64(n) / float64(len(q.Evidence))
}
