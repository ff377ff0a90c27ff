package main

import (
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTracing(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := run(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	out := b.String()
	for name, pattern := range map[string]string{
		"the assembly is part of the turn":                      `(?s)invoke_agent assistant.*─ generate_content chat.*─ adkmemory\.assemble`,
		"the background is linked to the turn":                  `adkmemory\.process .*⇢ adkmemory\.assemble of trace`,
		"the model call and the commit are parts of an observe": `(?s)├─ adkmemory\.observe.*│  ├─ generate_content note-writer .*gen_ai\.usage\.input_tokens=120.*│  └─ adkmemory\.commit`,
		"then it reflects":                                      `(?s)└─ adkmemory\.reflect.*adkmemory\.note\.generation=`,
	} {
		t.Run("OPS-1 "+name, func(t *testing.T) {
			t.Parallel()
			if !regexp.MustCompile(pattern).MatchString(out) {
				t.Errorf("no %s in\n%s", pattern, out)
			}
		})
	}
}
