package rawobs_test

import (
	"os"
	"strings"
	"testing"
)

func TestDocumented(t *testing.T) {
	t.Parallel()
	for file, want := range map[string][]string{
		"../../docs/agent-guidelines.md": {"Do not rely on summaries alone for recent tool outputs", "at least three raw outputs"},
		"../../docs/architecture.md": {
			"## Semantic drift prevention", "Recent tool outputs stay verbatim", `\n---OBSERVATION---\n`, "Fewer than three is allowed and warned about",
			"Prompts must not rely on summaries alone for recent tool outputs",
		},
		"doc.go": {"# Purpose", "# Size", "# How it is used", "must never rely on", "summaries alone"},
	} {
		t.Run("RAW-11 "+file, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range want {
				if !strings.Contains(string(text), w) {
					t.Errorf("it does not say %q", w)
				}
			}
		})
	}
}
