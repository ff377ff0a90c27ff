package middleware_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"

	"github.com/adkmemory/adkmemory/middleware/prompt"
)

func plugged(c *appConfig) { c.plugin, c.bare = true, true }

func TestPlugin(t *testing.T) {
	t.Parallel()

	t.Run("OBS-1 BUD-4 the plugin alone observes, injects and trims", func(t *testing.T) {
		t.Parallel()
		a := newApp(t, talker(), with(plugged), with(func(c *appConfig) { c.cfg.MaxMessageTokenBudget = 2000 }))
		for i := range 150 {
			a.say(fact(i))
		}
		a.settle()
		a.say("And now?")
		req := a.llm.last(t)
		if !strings.Contains(systemOf(req), prompt.MemoryHeading) {
			t.Error("the prompt has no memory section")
		}
		if got := len(req.Contents); got >= 80 || got < 10 {
			t.Errorf("%d of 301 contents were sent", got)
		}
		if s := a.mem.Stats(); s.Observations == 0 || s.LoadFailures != 0 || s.Panics != 0 {
			t.Errorf("stats: %+v", s)
		}
	})

	t.Run("CTX-3 plugin and model together inject once", func(t *testing.T) {
		t.Parallel()
		a := newApp(t, talker(), with(func(c *appConfig) { c.plugin = true }))
		for i := range 60 {
			a.say(fact(i))
			if got := strings.Count(systemOf(a.llm.last(t)), prompt.MemoryHeading); got > 1 {
				t.Fatalf("turn %d: %d memory sections", i, got)
			}
		}
		a.settle()
		a.say("And now?")
		if got := strings.Count(systemOf(a.llm.last(t)), prompt.MemoryHeading); got != 1 {
			t.Errorf("%d memory sections, want 1", got)
		}
	})

	t.Run("OBS-1 the threshold is checked after a run", func(t *testing.T) {
		t.Parallel()
		long := strings.Repeat("The harbour of Setúbal opens at 10:00 and dolphins come at noon. ", 90)
		llm := &scripted{name: "long", answer: func(int, *model.LLMRequest) (*model.LLMResponse, error) { return says(long) }}
		a := newApp(t, llm, with(plugged))
		a.say("Tell me all about Setúbal.") // below the threshold when the model was called; its answer is past it
		a.settle()
		if got := len(a.snapshot().Observations); got != 1 {
			t.Errorf("%d observations after the run, want 1", got)
		}
	})

	t.Run("OBS-1 an abandoned run is observed and forgotten", func(t *testing.T) {
		t.Parallel()
		long := strings.Repeat("The harbour of Setúbal opens at 10:00 and dolphins come at noon. ", 90)
		llm := &scripted{name: "long", answer: func(int, *model.LLMRequest) (*model.LLMResponse, error) { return says(long) }}
		a := newApp(t, llm, with(plugged))
		for range a.runner.Run(t.Context(), a.key.User, a.key.Session, genai.NewContentFromText("Tell me.", genai.RoleUser), agent.RunConfig{}) {
			break
		}
		a.settle()
		if got := len(a.snapshot().Observations); got != 1 {
			t.Errorf("%d observations, want 1", got)
		}
	})

	t.Run("CFG-2 a disabled plugin changes nothing", func(t *testing.T) {
		t.Parallel()
		a := newApp(t, talker(), with(plugged), with(func(c *appConfig) { c.cfg.Enabled = false }))
		for i := range 40 {
			a.say(fact(i))
		}
		if got := len(a.llm.last(t).Contents); got != 79 {
			t.Errorf("%d contents were sent, want all 79", got)
		}
	})

	t.Run("BUD-6 reported usage teaches once per call, through either door", func(t *testing.T) {
		t.Parallel()
		for _, door := range []struct {
			name         string
			plugin, bare bool
		}{{"model", false, false}, {"plugin", true, true}, {"both", true, false}} {
			t.Run(door.name, func(t *testing.T) {
				t.Parallel()
				// The model counts twice what the estimate says, so half as much fits the budget.
				llm := &scripted{name: "dense", answer: func(n int, req *model.LLMRequest) (*model.LLMResponse, error) {
					resp, err := says(fmt.Sprintf("Answer %d.", n))
					chars := len(systemOf(req))
					for _, c := range req.Contents {
						chars += len(textOf(c)) + 16
					}
					resp.UsageMetadata = &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: int32(chars / 2)}
					return resp, err
				}}
				a := newApp(t, llm, with(func(c *appConfig) {
					c.plugin, c.bare = door.plugin, door.bare
					c.cfg.MaxMessageTokenBudget = 4000
				}))
				for i := range 120 {
					a.say(fact(i))
					a.settle()
				}
				a.say("And now?")
				chars := 0
				for _, c := range a.llm.last(t).Contents {
					chars += len(textOf(c))
				}
				if chars/4 > 2200 || chars/4 < 1000 {
					t.Errorf("about %d estimated tokens of messages were sent; at twice that the budget of 4000 holds about 2000", chars/4)
				}
			})
		}
	})
}
