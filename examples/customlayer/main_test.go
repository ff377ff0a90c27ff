package main

import (
	"bytes"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), &out, nil); err != nil {
		t.Fatal(err)
	}
	prompts := strings.Split(out.String(), "=== ")[1:]
	if len(prompts) != 3 {
		t.Fatalf("got %s", out.String())
	}
	t.Run("RET-1 a layer of one's own stands beside the others, best first", func(t *testing.T) {
		t.Parallel()
		for _, want := range []string{
			"## User Knowledge", "Ada reviews every release", "## Known Solutions",
			"## Team Calendar\n\n- Friday, 27 November: Release of the billing service\n- Friday, 4 December: Release freeze begins",
		} {
			if !strings.Contains(prompts[1], want) {
				t.Errorf("%q is not in\n%s", want, prompts[1])
			}
		}
		if strings.Contains(out.String(), "dinner") {
			t.Errorf("got %s", out.String())
		}
	})
	t.Run("ASM-1 a question without keywords leaves the prompt as it is", func(t *testing.T) {
		t.Parallel()
		if prompts[2] != "And what is it?\nYou plan releases.\n\n" {
			t.Errorf("got %q", prompts[2])
		}
	})
}
