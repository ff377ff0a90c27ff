package middleware_test

import (
	"context"
	"testing"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"

	"github.com/adkmemory/adkmemory/middleware"
)

func TestPluginScopes(t *testing.T) {
	t.Parallel()
	t.Run("MEM-3 through the plugin alone, a second task of one agent is not told what the first one said", func(t *testing.T) {
		t.Parallel()
		c := newCrew(t, func(cfg *middleware.Config) { cfg.MessageTokenThreshold = 20 })
		p, err := c.mem.Plugin()
		if err != nil {
			t.Fatal(err)
		}
		task := c.made(llmagent.New(llmagent.Config{Name: "task", Description: "task", Model: member{c, "task"}, Mode: llmagent.ModeTask}))
		boss := c.made(llmagent.New(llmagent.Config{Name: "boss", Description: "boss", Model: member{c, "boss"}, SubAgents: []agent.Agent{task}}))
		r, err := runner.New(runner.Config{
			AppName: c.key.App, Agent: boss, SessionService: c.sessions, AutoCreateSession: true,
			PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{p}},
		})
		if err != nil {
			t.Fatal(err)
		}
		say := func() {
			for _, err := range r.Run(context.Background(), c.key.User, c.key.Session, genai.NewContentFromText(c.words(20), genai.RoleUser), agent.RunConfig{}) {
				if err != nil {
					t.Fatal(err)
				}
			}
			c.settle()
		}
		c.first["task"] = c.settle
		c.will("boss",
			&genai.FunctionCall{Name: "task", Args: map[string]any{"request": "the first"}},
			&genai.FunctionCall{Name: "task", Args: map[string]any{"request": "the second"}})
		for range 4 {
			say() // to the first task
		}
		first := c.saidBy("task")
		c.will("task", &genai.FunctionCall{Name: "finish_task", Args: map[string]any{"result": "done"}})
		say()
		if got := overlap(first, c.noted("task")); len(got) > 0 || len(first) == 0 {
			t.Errorf("of %d things the first task said, the second is told %v", len(first), got)
		}
	})
}
