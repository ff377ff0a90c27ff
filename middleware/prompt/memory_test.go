package prompt_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/prompt"
	"github.com/adkmemory/adkmemory/middleware/token"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("differs from %s (rewrite it with -update):\n%s", path, got)
	}
}

var day = time.Date(2024, 5, 15, 15, 0, 0, 0, time.UTC)

func note(id string, i int, text string) backends.Note {
	start := day.Add(time.Duration(i) * 20 * time.Hour)
	return backends.Note{ID: id, Text: text, Range: backends.Range{StartTime: start, EndTime: start.Add(15 * time.Minute)}}
}

func observations(n int, text string) []backends.Observation {
	out := make([]backends.Observation, n)
	for i := range out {
		out[i].Note = note(fmt.Sprintf("o%d", i+1), 100+i, text)
	}
	return out
}

func reflections(n int, text string) []backends.Reflection {
	out := make([]backends.Reflection, n)
	for i := range out {
		out[i] = backends.Reflection{Note: note(fmt.Sprintf("r%d", i+1), i, text), Generation: 1}
	}
	return out
}

var header = regexp.MustCompile(`^(Observation|Reflection, generation \d+)(, \d{4}-\d\d-\d\d \d\d:\d\d( to (\d{4}-\d\d-\d\d )?\d\d:\d\d)? UTC)?:$`)

// checkSection parses a memory section: its headings once and in order, everything else a header of ours or quoted.
func checkSection(t testing.TB, text string) {
	t.Helper()
	checkVisible(t, text)
	if text == "" {
		return
	}
	var headings []string
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "> "), line == "", header.MatchString(line):
		case i == 2 && strings.HasPrefix(line, "Notes about earlier turns"):
		case strings.HasPrefix(line, "#"):
			headings = append(headings, line)
		default:
			t.Fatalf("line %d %q stands outside of a quote in\n%s", i, line, text)
		}
	}
	want := []string{prompt.MemoryHeading}
	for _, h := range []string{"### Reflections", "### Observations"} {
		if slices.Contains(headings, h) {
			want = append(want, h)
		}
	}
	if !slices.Equal(headings, want) || !strings.HasPrefix(text, prompt.MemoryHeading+"\n") {
		t.Fatalf("headings %q, want %q", headings, want)
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	obs := []backends.Observation{
		{Note: note("o1", 3, "- 2024-05-18 user: wants the cheapest seat.\n- 2024-05-18 agent: offered HAT069 for $121.")},
		{Note: note("o2", 4, "- 2024-05-18 user: booked HAT083.")},
	}
	refs := []backends.Reflection{
		{Note: note("r1", 0, "- The user is Mia Li and prefers the window."), Generation: 2},
		{Note: note("r2", 2, "- She has two certificates."), Generation: 1},
	}
	t.Run("CTX-3 reflections stand before observations, oldest first", func(t *testing.T) {
		t.Parallel()
		s := prompt.Memory(refs, obs, prompt.Budget{})
		golden(t, "memory.golden", s.Text)
		checkSection(t, s.Text)
		if want := []string{"r1", "r2", "o1", "o2"}; !slices.Equal(s.Included, want) || len(s.LeftOut) > 0 {
			t.Errorf("included %v, left out %v", s.Included, s.LeftOut)
		}
		if s.Tokens != (token.Estimator{}).Count(s.Text) {
			t.Errorf("Tokens = %d", s.Tokens)
		}
	})
	t.Run("BUD-3 observations newest first on request", func(t *testing.T) {
		t.Parallel()
		s := prompt.Memory(refs, obs, prompt.Budget{NewestFirst: true})
		golden(t, "memory_newest.golden", s.Text)
		if want := []string{"r1", "r2", "o2", "o1"}; !slices.Equal(s.Included, want) {
			t.Errorf("included %v, want %v", s.Included, want)
		}
	})
	t.Run("CTX-2 no notes, no section", func(t *testing.T) {
		t.Parallel()
		if s := prompt.Memory(nil, nil, prompt.Budget{}); s.Text != "" || s.Tokens != 0 || s.Included != nil || s.LeftOut != nil {
			t.Errorf("got %+v", s)
		}
	})
	t.Run("OBS-7 notes cannot leave their quote", func(t *testing.T) {
		t.Parallel()
		for _, a := range attacks(t) {
			s := prompt.Memory(reflections(2, a), observations(2, a), prompt.Budget{Tokens: 1 << 30})
			checkSection(t, s.Text)
			if len(s.Included) != 4 {
				t.Errorf("included %v", s.Included)
			}
		}
	})
	t.Run("CTX-3 a note without dates has none in its header", func(t *testing.T) {
		t.Parallel()
		s := prompt.Memory(nil, []backends.Observation{{Note: backends.Note{ID: "o", Text: "x"}}}, prompt.Budget{})
		if !strings.Contains(s.Text, "\nObservation:\n> x") {
			t.Errorf("got %q", s.Text)
		}
	})
}

func TestMemoryBudget(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("word ", 80) // 100 tokens
	for _, tc := range []struct {
		name     string
		refs     []backends.Reflection
		obs      []backends.Observation
		budget   prompt.Budget
		included []string
		leftOut  []string
	}{
		{
			"BUD-1 4000 tokens by default",
			nil, observations(50, text), prompt.Budget{},
			ids("o", 16, 50), ids("o", 1, 15),
		},
		{
			"BUD-2 reflections go in first",
			reflections(2, text), observations(4, text), prompt.Budget{Tokens: 420},
			[]string{"r1", "r2", "o4"}, ids("o", 1, 3),
		},
		{
			"BUD-2 reflections over the budget fill it and no observation is shown",
			reflections(4, text), observations(2, "tiny"), prompt.Budget{Tokens: 300},
			[]string{"r3", "r4"}, []string{"r1", "r2", "o1", "o2"},
		},
		{
			"BUD-3 observations stop at the first that exceeds the budget",
			nil,
			append(append(observations(1, "tiny"), observations(1, strings.Repeat("word ", 400))...), observations(1, text)...),
			prompt.Budget{Tokens: 300},
			[]string{"o1"}, []string{"o1", "o1"},
		},
		{
			"CFG-4 at most so many reflections and observations",
			reflections(7, "r"), observations(30, "o"), prompt.Budget{MaxReflections: 5, MaxObservations: 20},
			append(ids("r", 3, 7), ids("o", 11, 30)...), append(ids("r", 1, 2), ids("o", 1, 10)...),
		},
		{
			"CFG-4 zero means no limit",
			reflections(7, "r"), observations(30, "o"), prompt.Budget{},
			append(ids("r", 1, 7), ids("o", 1, 30)...), nil,
		},
		{
			"BUD-2 the highest generation goes in first",
			append([]backends.Reflection{{Note: note("old", 0, text), Generation: 3}}, reflections(3, text)...), nil,
			prompt.Budget{Tokens: 300},
			[]string{"old", "r3"}, []string{"r1", "r2"},
		},
		{
			"BUD-1 a note that does not fit is not cut",
			nil, observations(1, text), prompt.Budget{Tokens: 60},
			nil, []string{"o1"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := prompt.Memory(tc.refs, tc.obs, tc.budget)
			if !slices.Equal(s.Included, tc.included) || !slices.Equal(s.LeftOut, tc.leftOut) {
				t.Errorf("included %v, left out %v; want %v and %v", s.Included, s.LeftOut, tc.included, tc.leftOut)
			}
			limit := tc.budget.Tokens
			if limit == 0 {
				limit = prompt.DefaultTokens
			}
			if got := (token.Estimator{}).Count(s.Text); got > limit || got != s.Tokens {
				t.Errorf("%d tokens, reported %d, budget %d", got, s.Tokens, limit)
			}
			checkSection(t, s.Text)
		})
	}
}

// steep counts the whole for more than the sum of its parts.
type steep struct{}

func (steep) Count(text string) int { return len(text) * len(text) / 100 }

func TestMemoryCountsTheWhole(t *testing.T) {
	t.Parallel()
	t.Run("BUD-1 the budget holds with a counter that is not additive", func(t *testing.T) {
		t.Parallel()
		s := prompt.Memory(nil, observations(10, "some text of a note"), prompt.Budget{Tokens: 1500, Counter: steep{}})
		if s.Tokens > 1500 || s.Tokens != (steep{}).Count(s.Text) || len(s.Included)+len(s.LeftOut) != 10 {
			t.Errorf("got %d tokens, included %v, left out %v", s.Tokens, s.Included, s.LeftOut)
		}
	})
}

func ids(prefix string, from, to int) []string {
	var out []string
	for i := from; i <= to; i++ {
		out = append(out, fmt.Sprintf("%s%d", prefix, i))
	}
	return out
}

func BenchmarkMemory(b *testing.B) {
	text := strings.TrimSpace(strings.Repeat("- 2024-05-15 user: wants the cheapest seat from JFK to SEA.\n", 8))
	refs, obs := reflections(5, text), observations(20, text)
	b.ReportAllocs()
	for b.Loop() {
		prompt.Memory(refs, obs, prompt.Budget{})
	}
}

func BenchmarkQuote(b *testing.B) {
	text := strings.Repeat("- 2024-05-15 user: wants the cheapest seat from JFK to SEA.\n", 100)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		prompt.Quote(text)
	}
}
