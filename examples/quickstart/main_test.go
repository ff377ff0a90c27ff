package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func noEnvironment(string) string { return "" }

func quickstart(t *testing.T, args ...string) string {
	t.Helper()
	var out strings.Builder
	if err := run(t.Context(), args, &out, noEnvironment); err != nil {
		t.Fatalf("run: %v\n%s", err, out.String())
	}
	return out.String()
}

func TestQuickstart(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "memory.db")
	first := quickstart(t, "-db", db)
	second := quickstart(t, "-db", db)
	reset := quickstart(t, "-db", db, "-reset")

	t.Run("OBS-1 notes appear while the conversation goes on", func(t *testing.T) {
		t.Parallel()
		if n := strings.Count(first, "✎ observation over messages"); n < 2 {
			t.Errorf("%d observations were shown", n)
		}
	})
	t.Run("REF-1 observations are condensed", func(t *testing.T) {
		t.Parallel()
		if !strings.Contains(first, "✎ reflection over") {
			t.Error("no reflection was shown")
		}
	})
	t.Run("CTX-3 the agent answers from a note about what left the window", func(t *testing.T) {
		t.Parallel()
		if !strings.Contains(first, "“Noor turns seven on 12 May 2026.” (from my notes)") {
			t.Error("the birthday is not known from the notes")
		}
	})
	t.Run("BUD-4 less is sent than the whole history", func(t *testing.T) {
		t.Parallel()
		turns := regexp.MustCompile(`sent ([\d,]+) tokens .* whole history ([\d,]+) `).FindAllStringSubmatch(first, -1)
		if len(turns) != len(firstVisit) {
			t.Fatalf("%d turns were shown, want %d", len(turns), len(firstVisit))
		}
		last := turns[len(turns)-1]
		var sent, history int
		for i, number := range []*int{&sent, &history} {
			if _, err := fmt.Sscan(strings.ReplaceAll(last[i+1], ",", ""), number); err != nil {
				t.Fatal(err)
			}
		}
		if 2*sent > history {
			t.Errorf("the last turn sent %d tokens of %d", sent, history)
		}
	})
	t.Run("the second run remembers", func(t *testing.T) {
		t.Parallel()
		if !strings.Contains(second, "Welcome back!") || !strings.Contains(second, "12 May 2026.” (from my notes)") {
			t.Errorf("second run:\n%s", second)
		}
	})
	t.Run("-reset forgets", func(t *testing.T) {
		t.Parallel()
		if !strings.Contains(reset, "Nothing is remembered yet") {
			t.Errorf("after a reset:\n%s", reset)
		}
	})
}

func TestChooseModel(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		env  map[string]string
		want string
	}{
		{"offline by default", nil, "built-in"},
		{"Gemini with a key", map[string]string{"GOOGLE_API_KEY": "k"}, "gemini-2.5-flash"},
		{"OpenAI with a URL and a model", map[string]string{"OPENAI_BASE_URL": "http://localhost:1/v1", "OPENAI_MODEL": "m"}, "m"},
		{"OpenAI without a model", map[string]string{"OPENAI_BASE_URL": "http://localhost:1/v1"}, "built-in"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			llm, err := chooseModel(t.Context(), func(name string) string { return tt.env[name] })
			if err != nil {
				t.Fatal(err)
			}
			if llm.Name() != tt.want || llm.builtIn != (tt.want == "built-in") {
				t.Errorf("model = %q, built in: %t", llm.Name(), llm.builtIn)
			}
		})
	}
}

func Example_wrapped() {
	fmt.Println(wrapped(strings.Repeat("a line that is longer than the column, ", 4)+"ends here", "  "))
	// Output:
	// a line that is longer than the column, a line that is longer than the column, a line that is longer
	//   than the column, a line that is longer than the column, ends here
}
