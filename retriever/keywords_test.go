package retriever_test

import (
	"slices"
	"testing"

	"github.com/adkmemory/adkmemory/retriever"
)

func TestKeywords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"KEY-1 English stop words are removed", "What is the status of our deployment, and why didn't it finish?", []string{"status", "deployment", "finish"}},
		{"KEY-1 a query of stop words alone has no keywords", "what is it, and who are you?", nil},
		{"KEY-2 single Latin letters are removed", "plan b or é for x", []string{"plan"}},
		{"KEY-2 two-character technical terms stay", "Go CI DB", []string{"go", "ci", "db"}},
		{"KEY-2 one-character words of other scripts stay", "猫 개 い 7", []string{"猫", "개", "い", "7"}},
		{"KEY-3 punctuation is stripped at word boundaries only", `"node.js" (user-id), «état»? --flag! ***`, []string{"node.js", "user-id", "état", "flag"}},
		{"KEY-3 punctuation alone is no keyword", "?!  --  👍 :-)", nil},
		{"RET-4 each keyword counts once", "deploy Deploy DEPLOY.", []string{"deploy"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := retriever.Keywords(c.text); !slices.Equal(got, c.want) {
				t.Errorf("Keywords(%q) = %q, want %q", c.text, got, c.want)
			}
		})
	}
}
