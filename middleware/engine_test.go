package middleware_test

import (
	"strings"
	"testing"
)

func TestSmoke(t *testing.T) {
	t.Parallel()
	a := newApp(t, talker())
	for i := range 200 {
		a.say(fact(i))
	}
	a.settle()
	a.say("and now?")
	snap := a.snapshot()
	req := a.llm.last(t)
	t.Logf("obs %d refl %d contents %d", len(snap.Observations), len(snap.Reflections), len(req.Contents))
	for _, r := range snap.Reflections {
		t.Logf("gen %d tokens %d range %d-%d", r.Generation, r.Tokens, r.Range.Start, r.Range.End)
	}
	for _, r := range snap.Observations {
		t.Logf("obs tokens %d range %d-%d", r.Tokens, r.Range.Start, r.Range.End)
	}
	t.Logf("%+v", a.mem.Stats())
	if !strings.Contains(systemOf(req), "## Conversation Memory") {
		t.Error("no memory section")
	}
}
