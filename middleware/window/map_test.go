package window_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/agent/workflowagents/loopagent"
	"google.golang.org/adk/v2/agent/workflowagents/parallelagent"
	"google.golang.org/adk/v2/agent/workflowagents/sequentialagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/agenttool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/adk/v2/tool/toolconfirmation"
)

// TestMap runs ADK for real; the model of every agent checks the mapping of what it is sent (see world.check).
func TestMap(t *testing.T) {
	t.Parallel()
	subs := func(agents ...agent.Agent) func(*llmagent.Config) {
		return func(c *llmagent.Config) { c.SubAgents = agents }
	}
	for name, scenario := range map[string]func(t *testing.T, w *world){
		"MEM-3 one agent with tools, parallel calls and equal texts": func(t *testing.T, w *world) {
			say := w.run(w.agent("solo"))
			w.will("solo", w.call("look"), w.call("look", "look"), w.text("done"))
			for range 3 {
				say()
				say(&genai.Part{Text: "ok"})
			}
		},
		"MEM-3 transfer to a sub-agent and back": func(t *testing.T, w *world) {
			say := w.run(w.agent("root", subs(w.agent("helper"))))
			w.will("root", w.call("look"), transfer("helper"))
			w.will("helper", w.call("look"), w.text("here"), w.call("look", "look"), transfer("root"))
			say()
			say()
			say()
		},
		"MEM-3 sequential and loop agents see each other as context": func(t *testing.T, w *world) {
			inner := must(t)(loopagent.New(loopagent.Config{MaxIterations: 2, AgentConfig: agent.Config{Name: "loop", SubAgents: []agent.Agent{w.agent("critic")}}}))
			say := w.run(must(t)(sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{
				Name: "seq", SubAgents: []agent.Agent{w.agent("first"), inner, w.agent("last")},
			}})))
			w.will("first", w.call("look", "slow"), w.text("first"))
			w.will("critic", w.call("look"), w.text("hm"), w.call("look"))
			say()
			say()
		},
		"MEM-3 parallel branches": func(t *testing.T, w *world) {
			fan := must(t)(parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{
				Name: "fan", SubAgents: []agent.Agent{w.agent("left"), w.agent("right")},
			}}))
			say := w.run(must(t)(sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{
				Name: "seq", SubAgents: []agent.Agent{w.agent("plan"), fan, w.agent("merge")},
			}})))
			w.will("left", w.call("look"), w.call("look"), w.text("left"))
			w.will("right", w.call("look", "look"), w.text("right"))
			say()
			say()
		},
		"MEM-3 isolated tasks see their own scope": func(t *testing.T, w *world) {
			task := w.agent("task", func(c *llmagent.Config) { c.Mode = llmagent.ModeTask })
			single := w.agent("single", func(c *llmagent.Config) { c.Mode = llmagent.ModeSingleTurn })
			say := w.run(w.agent("boss", subs(task, single)))
			w.will("boss", w.call("single"), w.call("task"), w.text("delegated"))
			w.will("single", w.call("look"), w.text("single"))
			w.will("task", w.call("look"), w.text("which one?"), w.call("look"),
				raw(&genai.Part{FunctionCall: &genai.FunctionCall{Name: "finish_task", Args: map[string]any{"result": "all done"}}}))
			say()
			say()
			say()
			say()
		},
		"MEM-3 an agent as a tool has a session of its own": func(t *testing.T, w *world) {
			expert := agenttool.New(w.agent("expert"), nil)
			say := w.run(w.agent("root", func(c *llmagent.Config) { c.Tools = append(c.Tools, expert) }))
			w.will("root", w.call("expert", "look"), w.text("asked"), w.call("expert"))
			w.will("expert", w.call("look"), w.text("because"))
			say()
			say()
		},
		"BUD-7 a confirmation comes turns later": func(t *testing.T, w *world) {
			book := w.tool("book", false, func(c *functiontool.Config) { c.RequireConfirmation = true })
			say := w.run(w.agent("solo", func(c *llmagent.Config) { c.Tools = []tool.Tool{book, w.tool("look", false)} }))
			w.will("solo", w.call("look"), w.call("book", "look"))
			say()
			say(&genai.Part{FunctionResponse: &genai.FunctionResponse{
				ID: w.callID(toolconfirmation.FunctionCallName), Name: toolconfirmation.FunctionCallName, Response: map[string]any{"confirmed": true},
			}})
			say()
		},
		"BUD-7 late, superseded and merged responses": func(t *testing.T, w *world) {
			say := w.run(w.agent("solo"))
			w.will("solo", w.call("slow", "look"), w.text("started"), w.text("still running"))
			say()
			id := w.callID("slow")
			say()
			say(w.response(id, "slow"))
			w.will("solo", w.call("look"))
			say()
			say(w.response(id, "slow"))
			say()
		},
		"BUD-7 parallel calls answered one by one, one never": func(t *testing.T, w *world) {
			quiet, err := functiontool.New(functiontool.Config{Name: "quiet", Description: "quiet", IsLongRunning: true},
				func(agent.Context, args) (map[string]any, error) { return nil, nil })
			if err != nil {
				t.Fatal(err)
			}
			say := w.run(w.agent("solo", func(c *llmagent.Config) { c.Tools = append(c.Tools, quiet) }))
			w.will("solo", w.call("quiet", "slow", "quiet"))
			say()
			say()
			id := w.callID("quiet")
			say(w.response(id, "quiet"))
			say()
			say(w.response(w.callID("slow"), "slow"))
			say()
		},
		"MEM-3 transcriptions are joined as ADK joins them": func(t *testing.T, w *world) {
			say := w.run(w.agent("solo"))
			say()
			heard := func(author string, in bool, texts ...string) {
				for _, s := range texts {
					e := session.NewEvent(t.Context(), "live")
					e.Author, e.Timestamp = author, time.Now()
					if in {
						e.InputTranscription = &genai.Transcription{Text: s + w.mark()}
					} else {
						e.OutputTranscription = &genai.Transcription{Text: s + w.mark()}
					}
					w.append(e)
				}
			}
			heard("user", true, "can ", "you ", "hear me?")
			heard("solo", false, "yes, ", "I can")
			heard("user", true, "good")
			heard("other", false, "me too")
			say()
			say()
		},
		"MEM-3 parts and events that ADK leaves out": func(t *testing.T, w *world) {
			say := w.run(w.agent("solo"))
			w.will("solo", raw(&genai.Part{}), raw(&genai.Part{}, &genai.Part{Text: "thought " + w.mark(), Thought: true}, &genai.Part{Text: w.mark()}),
				raw(&genai.Part{InlineData: &genai.Blob{MIMEType: "image/png", Data: []byte(w.mark())}}))
			for range 4 {
				say()
			}
			e := session.NewEvent(t.Context(), "x")
			e.Author, e.Content = "stranger", &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{}}}
			w.append(e)
			say()
		},
		"MEM-3 an agent without history": func(t *testing.T, w *world) {
			say := w.run(w.agent("solo", func(c *llmagent.Config) { c.IncludeContents = llmagent.IncludeContentsNone }))
			for range 2 {
				w.will("solo", w.call("look"), w.call("look"))
				say()
				say(&genai.Part{Text: "the same " + w.mark()})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			scenario(t, w)
			if w.calls < 3 {
				t.Errorf("only %d model calls were checked", w.calls)
			}
		})
	}
}

// TestMapCallbacks lets a callback change the contents of a long conversation. What it puts in has no source; everything
// else keeps its own.
func TestMapCallbacks(t *testing.T) {
	t.Parallel()
	user := func(s string) *genai.Content { return genai.NewContentFromText(s, genai.RoleUser) }
	// turn is where a user text stands, at or before the given place.
	turn := func(cs []*genai.Content, at int) int {
		for at > 0 && (cs[at].Role != genai.RoleUser || cs[at].Parts[0].Text == "") {
			at--
		}
		return at
	}
	insert := func(cs []*genai.Content, at int, c ...*genai.Content) []*genai.Content {
		return append(append(append([]*genai.Content(nil), cs[:at]...), c...), cs[at:]...)
	}
	for name, change := range map[string]func(cs []*genai.Content) []*genai.Content{
		"put in front": func(cs []*genai.Content) []*genai.Content { return insert(cs, 0, user("rogue 1"), user("rogue 2")) },
		"put at the end": func(cs []*genai.Content) []*genai.Content {
			return insert(cs, len(cs), user("rogue 1"), user("rogue 2"))
		},
		"put in the middle": func(cs []*genai.Content) []*genai.Content { return insert(cs, turn(cs, len(cs)/2), user("rogue 1")) },
		"put in at both ends": func(cs []*genai.Content) []*genai.Content {
			return insert(insert(cs, len(cs), user("rogue 1")), 0, user("rogue 2"))
		},
		"put in everywhere": func(cs []*genai.Content) []*genai.Content {
			var out []*genai.Content
			for i, c := range cs {
				if i == 0 || c.Role == genai.RoleUser && c.Parts[0].FunctionResponse == nil {
					out = append(out, user(fmt.Sprintf("rogue %d", i%7)))
				}
				out = append(out, c)
			}
			return out
		},
		"removed in front": func(cs []*genai.Content) []*genai.Content { return cs[turn(cs, len(cs)/2):] },
		"removed in the middle": func(cs []*genai.Content) []*genai.Content {
			return append(cs[:min(1, turn(cs, len(cs)/2))], cs[turn(cs, len(cs)/2):]...)
		},
		"removed at the end": func(cs []*genai.Content) []*genai.Content { return cs[:max(1, len(cs)-2)] },
		"texts rewritten": func(cs []*genai.Content) []*genai.Content {
			for _, c := range cs {
				for _, p := range c.Parts {
					if p.Text != "" {
						p.Text = "rogue rewritten"
					}
				}
			}
			return cs
		},
		"the first rewritten and one put at the end": func(cs []*genai.Content) []*genai.Content {
			cs[0].Parts[0].Text = "rogue first"
			return append(cs, user("rogue last"))
		},
		"arguments and results rewritten": func(cs []*genai.Content) []*genai.Content {
			for _, c := range cs {
				for _, p := range c.Parts {
					if p.FunctionCall != nil {
						p.FunctionCall.Args["redacted"] = true
					}
					if p.FunctionResponse != nil {
						p.FunctionResponse.Response["redacted"] = true
					}
				}
			}
			return cs
		},
		"nil contents and parts": func(cs []*genai.Content) []*genai.Content {
			return insert(insert(cs, 1, &genai.Content{Role: "user", Parts: []*genai.Part{nil, {Text: "rogue"}}}, nil), 0, &genai.Content{Parts: []*genai.Part{{Text: "rogue"}}})
		},
	} {
		t.Run("BUD-7 "+name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for i := range 10 {
				w.rogue[fmt.Sprintf("rogue %d", i)] = true
			}
			for _, s := range []string{"rogue", "rogue first", "rogue last", "rogue rewritten"} {
				w.rogue[s] = true
			}
			say := w.run(w.agent("solo", func(c *llmagent.Config) {
				c.BeforeModelCallbacks = []llmagent.BeforeModelCallback{func(_ agent.Context, req *model.LLMRequest) (*model.LLMResponse, error) {
					req.Contents = change(req.Contents)
					return nil, nil
				}}
			}))
			for range 4 {
				w.will("solo", w.call("look"), w.call("look", "slow"), w.text("done"))
				say()
			}
		})
	}
}
