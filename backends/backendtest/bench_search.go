package backendtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

// BenchSearch measures search over messages of one user, alone and beside another user with far more of them. A
// message has about 15 words of a vocabulary that is distributed as natural language is; a question has five.
func BenchSearch(b *testing.B, open func(testing.TB) Harness, messages, neighbours int) {
	run := func(b *testing.B, l library) {
		r := rand.New(rand.NewPCG(3, 3))
		var times []time.Duration
		for b.Loop() {
			question := fmt.Sprintf("What did Caroline say about %s and %s?", vocable(r, 50), vocable(r, 500))
			begin := time.Now()
			found, err := l.Search(ctx(), backends.SearchQuery{
				App: "app", User: "user", Kinds: []backends.Kind{backends.KindMessage}, Text: question, Limit: 20,
			})
			times = append(times, time.Since(begin))
			if err != nil || len(found) == 0 {
				b.Fatal(found, err)
			}
		}
		slices.Sort(times)
		b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
		b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
	}
	l := libraryOf(b, open(b))
	talk(b, l, keyOf("s"), messages)
	b.Run(fmt.Sprintf("Search/messages=%d", messages), func(b *testing.B) { run(b, l) })
	if neighbours > 0 {
		talk(b, l, backends.SessionKey{App: "app", User: "neighbour", Session: "s"}, neighbours)
		b.Run(fmt.Sprintf("Search/messages=%d/neighbours=%d", messages, neighbours), func(b *testing.B) { run(b, l) })
	}
}

// talk appends messages, 100 at a time, in sessions of a thousand.
func talk(b testing.TB, l library, key backends.SessionKey, messages int) {
	b.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	session := key.Session
	var batch []backends.Message
	for i := range messages {
		words := make([]string, 10+r.IntN(11))
		for j := range words {
			words[j] = vocable(r, 0)
		}
		batch = append(batch, backends.Message{
			ID: fmt.Sprint("m", i), Author: []string{"Caroline", "agent"}[i%2], Text: strings.Join(words, " "),
			Time: start().Add(time.Duration(i) * time.Minute),
		})
		if len(batch) == 100 || i == messages-1 {
			key.Session = fmt.Sprint(session, i/1000)
			if _, err := l.AppendMessages(ctx(), key, backends.Stream{}, batch); err != nil {
				b.Fatal(err)
			}
			batch = batch[:0]
		}
	}
}

// vocable is the word of a random rank, from least on, by Zipf's law over 30,000 words.
func vocable(r *rand.Rand, least int) string {
	rank := least + int(math.Exp(r.Float64()*math.Log(30_000)))
	return fmt.Sprintf("w%dx", rank)
}
