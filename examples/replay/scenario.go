package main

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/agent/workflowagents/parallelagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/agenttool"
	"google.golang.org/genai"
)

// scenarioTurns is enough talk for the window to move several times.
const scenarioTurns = 120

// scenarios returns what a transcript cannot express: several agents in one session. All of them share one memory.
func scenarios() []drama {
	return []drama{
		scenario("generated/transfer", transfer),
		scenario("generated/parallel-agents", parallelAgents),
		scenario("generated/agent-tool", agentTool),
	}
}

// stage is what the agents of a scenario know: which turn runs, and how to get a model with memory.
type stage struct {
	turn atomic.Int64
	wrap func(model.LLM) model.LLM
}

func scenario(name string, build func(*stage) (agent.Agent, error)) drama {
	s := &stage{}
	c := &clock{}
	return drama{
		session: name,
		turns:   scenarioTurns,
		clock:   c,
		begin: func(turn int) *genai.Content {
			s.turn.Store(int64(turn))
			c.set(time.Date(2024, 3, 4, 8, turn, 0, 0, time.UTC))
			return genai.NewContentFromText("What is new? "+remark(turn), genai.RoleUser)
		},
		end: func() error { return nil },
		root: func(wrap func(model.LLM) model.LLM) (agent.Agent, error) {
			s.wrap = wrap
			return build(s)
		},
	}
}

// agent makes an LLM agent whose model answers what reply says, and a remark when that is nil.
func (s *stage) agent(cfg llmagent.Config, reply func(turn int, answered bool) *genai.Content) (agent.Agent, error) {
	cfg.Description = "Works in the port's " + cfg.Name + "."
	cfg.Instruction = "You work in the port's " + cfg.Name + "."
	cfg.Model = s.wrap(scripted{cfg.Name, func(_ context.Context, req *model.LLMRequest) (*genai.Content, error) {
		turn := int(s.turn.Load())
		if content := reply(turn, endsWithResponse(req)); content != nil {
			return content, nil
		}
		return genai.NewContentFromText(cfg.Name+": "+remark(turn+500), genai.RoleModel), nil
	}})
	return llmagent.New(cfg)
}

// endsWithResponse reports whether a tool has just answered.
func endsWithResponse(req *model.LLMRequest) bool {
	if len(req.Contents) == 0 {
		return false
	}
	for _, p := range req.Contents[len(req.Contents)-1].Parts {
		if p.FunctionResponse != nil {
			return true
		}
	}
	return false
}

// talks is the reply of an agent that only ever remarks.
func talks(int, bool) *genai.Content { return nil }

// transfer: in the second half of every twenty turns the customs office answers, which the front desk transfers to and
// which transfers back.
func transfer(s *stage) (agent.Agent, error) {
	atCustoms := func(turn int) bool { return turn%20 >= 10 }
	to := func(name string) *genai.Content {
		return genai.NewContentFromFunctionCall("transfer_to_agent", map[string]any{"agent_name": name}, genai.RoleModel)
	}
	customs, err := s.agent(llmagent.Config{Name: "customs"}, func(turn int, _ bool) *genai.Content {
		if !atCustoms(turn) {
			return to("desk")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.agent(llmagent.Config{Name: "desk", SubAgents: []agent.Agent{customs}}, func(turn int, _ bool) *genai.Content {
		if atCustoms(turn) {
			return to("customs")
		}
		return nil
	})
}

// parallelAgents: two agents answer every turn at the same time, each on a branch of its own.
func parallelAgents(s *stage) (agent.Agent, error) {
	weather, err := s.agent(llmagent.Config{Name: "weather"}, talks)
	if err != nil {
		return nil, err
	}
	traffic, err := s.agent(llmagent.Config{Name: "traffic"}, talks)
	if err != nil {
		return nil, err
	}
	return parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{
		Name:      "outlook",
		SubAgents: []agent.Agent{weather, traffic},
	}})
}

// agentTool: every third turn the clerk asks an agent that runs as a tool, in a session of its own.
func agentTool(s *stage) (agent.Agent, error) {
	translator, err := s.agent(llmagent.Config{Name: "translator"}, talks)
	if err != nil {
		return nil, err
	}
	return s.agent(llmagent.Config{Name: "clerk", Tools: []tool.Tool{agenttool.New(translator, nil)}},
		func(turn int, answered bool) *genai.Content {
			if turn%3 != 0 || answered {
				return nil
			}
			return genai.NewContentFromFunctionCall("translator", map[string]any{"request": remark(turn)}, genai.RoleModel)
		})
}
