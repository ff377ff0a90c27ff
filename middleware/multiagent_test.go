package middleware_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/agent/workflowagents/parallelagent"
	"google.golang.org/adk/v2/agent/workflowagents/sequentialagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/agenttool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/adk/v2/tool/toolconfirmation"

	"github.com/adkmemory/adkmemory/middleware"
)

func TestSharedMemory(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	subs := func(agents ...agent.Agent) func(*llmagent.Config) {
		return func(c *llmagent.Config) { c.SubAgents = agents }
	}
	t.Run("MEM-3 an agent that took over knows what was noted before", func(t *testing.T) {
		t.Parallel()
		c := newCrew(t, nil)
		say := c.talk(c.agent("root", subs(c.agent("helper"))))
		for range 8 {
			say(ctx)
		}
		c.will("root", &genai.FunctionCall{Name: "transfer_to_agent", Args: map[string]any{"agent_name": "helper"}})
		say(ctx)
		before := append(c.saidBy("user"), c.saidBy("root")...)
		if n := c.covered("helper", before); n != len(before) {
			t.Errorf("the helper's prompt covers %d of %d messages", n, len(before))
		}
		if len(overlap(before, c.noted("helper"))) == 0 {
			t.Error("none of them by a note")
		}
	})
	t.Run("MEM-3 parallel branches do not see each other's notes, the agent behind them sees both", func(t *testing.T) {
		t.Parallel()
		c := newCrew(t, nil)
		fan := c.made(parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "fan", SubAgents: []agent.Agent{c.agent("left"), c.agent("right")}}}))
		say := c.talk(c.made(sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{
			Name: "seq", SubAgents: []agent.Agent{c.agent("plan"), fan, c.agent("merge")},
		}})))
		for range 10 {
			say(ctx)
		}
		left, right := c.saidBy("left"), c.saidBy("right")
		if got := overlap(right, append(c.noted("left"), c.shown("left")...)); len(got) > 0 {
			t.Errorf("left was told what right said: %v", got)
		}
		if got := overlap(left, append(c.noted("right"), c.shown("right")...)); len(got) > 0 {
			t.Errorf("right was told what left said: %v", got)
		}
		if len(overlap(left, c.noted("left"))) == 0 || len(overlap(c.saidBy("plan"), c.noted("left"))) == 0 {
			t.Error("left has no notes of its own, or none of what was said before the branches")
		}
		both := append(left, right...)
		if n := c.covered("merge", both); n != len(both) || len(overlap(left, c.noted("merge"))) == 0 {
			t.Errorf("merge knows %d of %d messages of the branches", n, len(both))
		}
		for _, n := range c.notes() {
			if marks := c.marksOf(n.Text); len(overlap(marks, left)) > 0 && len(overlap(marks, right)) > 0 {
				t.Errorf("a note mixes both branches: %v", marks)
			}
		}
	})
	t.Run("MEM-3 an isolated task and who gave it do not see each other's notes", func(t *testing.T) {
		t.Parallel()
		c := newCrew(t, nil)
		say := c.talk(c.agent("boss", subs(c.agent("task", func(l *llmagent.Config) { l.Mode = llmagent.ModeTask }))))
		for range 6 {
			say(ctx)
		}
		c.will("boss", &genai.FunctionCall{Name: "task", Args: map[string]any{"request": c.words(5)}})
		for range 6 {
			say(ctx) // to the task, which asks back each time
		}
		own := c.saidBy("task")
		if len(overlap(own, c.noted("task"))) == 0 {
			t.Error("the task has no notes of its own")
		}
		if got := overlap(c.saidBy("boss"), append(c.noted("task"), c.shown("task")...)); len(got) > 1 { // the delegation itself
			t.Errorf("the task was told what the boss said: %v", got)
		}
		c.will("task", &genai.FunctionCall{Name: "finish_task", Args: map[string]any{"result": "done"}})
		say(ctx)
		say(ctx)
		if got := overlap(own, append(c.noted("boss"), c.shown("boss")...)); len(got) > 0 {
			t.Errorf("the boss was told what the task said: %v", got)
		}
	})
	t.Run("MEM-3 an agent used as a tool reads its caller's memory and never writes to it", func(t *testing.T) {
		t.Parallel()
		for _, bound := range []bool{true, false} {
			c := newCrew(t, func(cfg *middleware.Config) { cfg.MessageTokenThreshold = 50 })
			c.first["expert"] = c.settle
			expert := agenttool.New(c.agent("expert"), nil)
			say := c.talk(c.agent("root", func(l *llmagent.Config) { l.Tools = []tool.Tool{expert} }))
			key := func() context.Context {
				if bound {
					return middleware.WithSessionKey(ctx, c.key)
				}
				return ctx
			}
			for range 6 {
				say(key())
			}
			for range 3 { // what the user and the root say is below the threshold, what the expert is told is not
				c.will("root", &genai.FunctionCall{Name: "expert", Args: map[string]any{"request": c.words(60)}})
				say(key(), &genai.Part{Text: c.words(1)})
			}
			if got := overlap(c.saidBy("user"), c.noted("expert")); (len(got) > 0) != bound {
				t.Errorf("bound %v: the expert was told %v", bound, got)
			}
			own := c.eventIDs()
			for _, n := range c.notes() {
				if !slices.Contains(own, n.Range.StartID) || !slices.Contains(own, n.Range.EndID) {
					t.Errorf("bound %v: a note is not over the session's own messages: %s", bound, n.Text)
				}
			}
			c.checkStored()
		}
	})
	t.Run("MEM-3 runs of apps that are not named never write", func(t *testing.T) {
		t.Parallel()
		c := newCrew(t, func(cfg *middleware.Config) { cfg.AppNames = []string{"other"} })
		say := c.talk(c.agent("root"))
		for range 5 {
			say(ctx)
		}
		if n := len(c.notes()); n > 0 {
			t.Errorf("%d notes", n)
		}
		if n := c.covered("root", c.saidBy("user")); n != 5 {
			t.Errorf("%d of 5 messages were sent", n)
		}
	})
}

func TestInterruptedTurns(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	t.Run("BUD-7 a confirmation comes after everything before it was observed", func(t *testing.T) {
		t.Parallel()
		c := newCrew(t, nil)
		book, err := functiontool.New(functiontool.Config{Name: "book", Description: "book", RequireConfirmation: true},
			func(agent.Context, map[string]any) (map[string]any, error) {
				return map[string]any{"result": c.words(10)}, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		say := c.talk(c.agent("root", func(l *llmagent.Config) { l.Tools = []tool.Tool{book} }))
		for range 6 {
			say(ctx)
		}
		c.will("root", &genai.FunctionCall{Name: "book", Args: map[string]any{"mark": c.words(1)}})
		say(ctx)
		id := c.callID(toolconfirmation.FunctionCallName)
		say(ctx, &genai.Part{FunctionResponse: &genai.FunctionResponse{
			ID: id, Name: toolconfirmation.FunctionCallName, Response: map[string]any{"confirmed": true},
		}})
		checkPairs(t, c.last("root").Contents)
		if !strings.Contains(encode(c.last("root").Contents), `"functionResponse":{"name":"book","response":{"result":"mk`) {
			t.Errorf("the result is missing: %s", encode(c.last("root").Contents))
		}
		for range 6 {
			say(ctx)
			checkPairs(t, c.last("root").Contents)
		}
		c.checkStored()
	})
	t.Run("BUD-7 a response that comes turns late is sent with its call, and once observed leaves with it", func(t *testing.T) {
		t.Parallel()
		c := newCrew(t, func(cfg *middleware.Config) { cfg.RawObservations = middleware.RawOff })
		slow, err := functiontool.New(functiontool.Config{Name: "slow", Description: "slow", IsLongRunning: true},
			func(agent.Context, map[string]any) (map[string]any, error) {
				return map[string]any{"result": "pending"}, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		say := c.talk(c.agent("root", func(l *llmagent.Config) { l.Tools = []tool.Tool{slow} }))
		c.will("root", &genai.FunctionCall{Name: "slow", Args: map[string]any{"mark": c.words(1)}})
		say(ctx)
		for range 6 {
			say(ctx)
		}
		result := c.words(20)
		say(ctx, &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: c.callID("slow"), Name: "slow", Response: map[string]any{"result": result}}})
		mark := markPattern.FindString(result)
		checkPairs(t, c.last("root").Contents)
		if !slices.Contains(c.shown("root"), mark) {
			t.Error("the late response was not sent")
		}
		for range 8 {
			say(ctx)
			checkPairs(t, c.last("root").Contents)
		}
		if slices.Contains(c.shown("root"), mark) || !slices.Contains(c.noted("root"), mark) {
			t.Error("the late response did not leave for a note")
		}
	})
}

// checkPairs makes sure that each response stands behind its call, and each call but the last before its response.
func checkPairs(t *testing.T, contents []*genai.Content) {
	t.Helper()
	for i, c := range contents {
		call, response := strings.Contains(encode(c), `"functionCall"`), strings.Contains(encode(c), `"functionResponse"`)
		if call && !pair(contents, i) || response && (i == 0 || !pair(contents, i-1)) {
			t.Errorf("content %d of %d is half a pair: %s", i, len(contents), encode(c))
		}
	}
}

func (c *crew) callID(name string) string {
	c.test.Helper()
	id := ""
	for _, e := range c.events() {
		for _, p := range e.Content.Parts {
			if p.FunctionCall != nil && p.FunctionCall.Name == name {
				id = p.FunctionCall.ID
			}
		}
	}
	if id == "" {
		c.test.Fatalf("no call of %s", name)
	}
	return id
}

// renamed is a session service that gives events new ids whenever a session is read.
type renamed struct {
	session.Service
	reads int
}

func (r *renamed) Get(ctx context.Context, req *session.GetRequest) (*session.GetResponse, error) {
	got, err := r.Service.Get(ctx, req)
	if err != nil {
		return nil, err
	}
	r.reads++
	for i := range got.Session.Events().Len() {
		got.Session.Events().At(i).ID = fmt.Sprintf("read %d, event %d", r.reads, i)
	}
	return got, nil
}

func TestLostIdentity(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	t.Run("CMP-2 ids replaced on every reload: each message is observed once", func(t *testing.T) {
		t.Parallel()
		c := newCrew(t, nil)
		c.sessions = &renamed{Service: c.sessions}
		say := c.talk(c.agent("root"))
		for range 15 {
			say(ctx)
		}
		seen := make(map[string]int)
		for _, n := range c.notes() {
			if n.Generation == 0 {
				for _, m := range c.marksOf(n.Text) {
					seen[m]++
				}
			}
		}
		for m, n := range seen {
			if n > 1 {
				t.Errorf("%s was observed %d times", m, n)
			}
		}
		all := append(c.saidBy("user"), c.saidBy("root")...)
		if n := c.covered("root", all); len(seen) < 20 || n < len(all)-1 { // the last answer came after the prompt
			t.Errorf("%d messages observed; the prompt covers %d of %d", len(seen), n, len(all))
		}
	})
	t.Run("CMP-2 a session that vanished and began anew keeps its notes and observes what is new", func(t *testing.T) {
		t.Parallel()
		c := newCrew(t, nil)
		say := c.talk(c.agent("root"))
		for range 10 {
			say(ctx)
		}
		old := append(c.saidBy("user"), c.saidBy("root")...)
		noted := len(c.notes())
		if err := c.sessions.Delete(ctx, &session.DeleteRequest{AppName: c.key.App, UserID: c.key.User, SessionID: c.key.Session}); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			say(ctx)
		}
		fresh := append(c.saidBy("user"), c.saidBy("root")...)
		if len(overlap(old, c.noted("root"))) == 0 {
			t.Error("what the vanished session said is forgotten")
		}
		if n := c.covered("root", fresh); n < len(fresh)-1 || len(c.notes()) == noted || len(overlap(fresh, c.noted("root"))) == 0 {
			t.Errorf("the prompt covers %d of %d new messages, %d notes before and %d now", n, len(fresh), noted, len(c.notes()))
		}
	})
	t.Run("CTX-4 without an ADK session the request's contents are observed and trimmed", func(t *testing.T) {
		t.Parallel()
		c := newCrew(t, nil)
		llm := c.mem.Model(member{c, "direct"})
		var history []*genai.Content
		for range 15 {
			history = append(history, genai.NewContentFromText(c.words(40), genai.RoleUser))
			for resp, err := range llm.GenerateContent(middleware.WithSessionKey(ctx, c.key), &model.LLMRequest{Contents: slices.Clone(history)}, false) {
				if err != nil {
					t.Fatal(err)
				}
				history = append(history, resp.Content)
			}
			c.settle()
		}
		all := markPattern.FindAllString(encode(history[:len(history)-1]), -1)
		if n := c.covered("direct", all); n != len(all) || len(c.last("direct").Contents) > 15 || len(c.noted("direct")) == 0 {
			t.Errorf("%d of %d messages are covered, %d contents sent", n, len(all), len(c.last("direct").Contents))
		}
	})
	t.Run("CTX-4 under a context that hides the invocation a bound key still works, without one nothing happens", func(t *testing.T) {
		t.Parallel()
		for _, bound := range []bool{true, false} {
			c := newCrew(t, nil)
			say := c.talk(c.agent("root", func(l *llmagent.Config) { l.Model = cancelling{l.Model} }))
			for range 12 {
				turn := ctx
				if bound {
					turn = middleware.WithSessionKey(ctx, c.key)
				}
				say(turn)
			}
			all := append(c.saidBy("user"), c.saidBy("root")...)
			if n := c.covered("root", all); n != len(all)-1 {
				t.Errorf("bound %v: %d of %d messages are covered", bound, n, len(all))
			}
			if (len(c.notes()) > 0) != bound {
				t.Errorf("bound %v: %d notes", bound, len(c.notes()))
			}
		}
	})
}

// cancelling is a model wrapper that gives each call a context of its own, as retries and timeouts do.
type cancelling struct{ model.LLM }

func (m cancelling) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		m.LLM.GenerateContent(ctx, req, stream)(yield)
	}
}
