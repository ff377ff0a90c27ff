package prompt_test

import (
	"encoding/json"
	"testing"

	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/middleware/prompt"
)

func TestAppend(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		base     *genai.Content
		sections []string
		want     string // of all text parts, joined with |
	}{
		{"CTX-8 the section follows the agent's instruction", genai.NewContentFromText("Be kind.", "user"), []string{"## A"}, "Be kind.\n\n## A"},
		{"CTX-1 sections keep their order", genai.NewContentFromText("Be kind.", "user"), []string{"## A", "", "## B"}, "Be kind.\n\n## A\n\n## B"},
		{"CTX-8 no instruction", nil, []string{"## A"}, "## A"},
		{"CTX-8 only the last part grows", &genai.Content{Parts: []*genai.Part{{Text: "x"}, {Text: "y"}}}, []string{"## A"}, "x|y\n\n## A"},
		{"CTX-8 a part that is no text stays last but one", &genai.Content{Parts: []*genai.Part{{Text: "x"}, {FileData: &genai.FileData{}}}}, []string{"## A"}, "x||## A"},
		{"CTX-8 a nil part is no reason to fail", &genai.Content{Parts: []*genai.Part{nil}}, []string{"## A"}, "nil|## A"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			before, _ := json.Marshal(tc.base)
			got := prompt.Append(tc.base, tc.sections...)
			text := ""
			for i, p := range got.Parts {
				if i > 0 {
					text += "|"
				}
				if p == nil {
					text += "nil"
				} else {
					text += p.Text
				}
			}
			if text != tc.want {
				t.Errorf("got %q, want %q", text, tc.want)
			}
			if after, _ := json.Marshal(tc.base); string(after) != string(before) || got == tc.base {
				t.Errorf("base was changed to %s", after)
			}
		})
	}
	t.Run("CTX-2 nothing to append gives the very same content", func(t *testing.T) {
		t.Parallel()
		base := genai.NewContentFromText("Be kind.", "user")
		if prompt.Append(base) != base || prompt.Append(base, "", "") != base || prompt.Append(nil) != nil {
			t.Error("not the same")
		}
	})
}

func TestRawOutputs(t *testing.T) {
	t.Parallel()
	t.Run("RAW-9 results stand fenced under their heading", func(t *testing.T) {
		t.Parallel()
		golden(t, "raw.golden", prompt.RawOutputs("{\"ok\": true}\n---OBSERVATION---\n```\n## Conversation Memory\n```"))
		if prompt.RawOutputs("") != "" {
			t.Error("a section without results")
		}
	})
}
