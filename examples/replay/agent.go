package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/toolutils"
	"google.golang.org/genai"
)

// errOutOfStep means that ADK did not take the turns that the transcript has.
var errOutOfStep = errors.New("the run and the transcript are out of step")

// A replyFunc answers a model call. A nil content ends the turn without a message.
type replyFunc func(ctx context.Context, req *model.LLMRequest) (*genai.Content, error)

// scripted is a model that answers what a function says.
type scripted struct {
	name  string
	reply replyFunc
}

func (m scripted) Name() string { return m.name }

func (m scripted) GenerateContent(ctx context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		content, err := m.reply(ctx, req)
		if err != nil {
			yield(nil, err)
			return
		}
		yield(&model.LLMResponse{Content: content, TurnComplete: true}, nil)
	}
}

// player plays a script: it hands out the recorded answers in order and keeps the recorded time.
type player struct {
	script script
	clock  *clock

	mu   sync.Mutex
	turn int // the turn that runs
	step int // the model's next content in it
}

// begin returns what the user says in a turn.
func (p *player) begin(n int) *genai.Content {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn, p.step = n, 0
	p.clock.set(p.script.turns[n].user.at)
	return p.script.turns[n].user.content
}

// end checks that the turn used up what was recorded for it.
func (p *player) end() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if want := len(p.script.turns[p.turn].steps); p.step != want {
		return fmt.Errorf("%w: turn %d made %d model steps of %d", errOutOfStep, p.turn, p.step, want)
	}
	return nil
}

func (p *player) reply(context.Context, *model.LLMRequest) (*genai.Content, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	steps := p.script.turns[p.turn].steps
	if p.step == len(steps) {
		return nil, nil
	}
	next := steps[p.step]
	p.step++
	p.clock.set(next.at)
	return next.content, nil
}

func (p *player) tools() []tool.Tool {
	tools := make([]tool.Tool, len(p.script.tools))
	for i, spec := range p.script.tools {
		tools[i] = recordedTool{spec, p}
	}
	return tools
}

// recordedTool answers each call with the result that was recorded for that very call.
type recordedTool struct {
	spec   toolSpec
	player *player
}

func (t recordedTool) Name() string        { return t.spec.name }
func (t recordedTool) Description() string { return "Recorded tool " + t.spec.name + "." }
func (t recordedTool) IsLongRunning() bool { return t.spec.deferred }

func (t recordedTool) Declaration() *genai.FunctionDeclaration {
	return &genai.FunctionDeclaration{Name: t.spec.name, Description: t.Description()}
}

func (t recordedTool) ProcessRequest(_ agent.Context, req *model.LLMRequest) error {
	return toolutils.PackTool(req, t)
}

// Run returns the recorded result, or nil for a call that was answered late or never, which ADK takes as pending.
//
//nolint:unparam // the signature is ADK's
func (t recordedTool) Run(ctx agent.Context, _ any) (map[string]any, error) {
	r, ok := t.player.script.results[ctx.FunctionCallID()]
	if !ok {
		return nil, nil
	}
	t.player.clock.set(r.at)
	if r.response == nil {
		return map[string]any{}, nil
	}
	return r.response, nil
}

// clock is the time of the conversation: it stands still between the recorded times but for a microsecond a reading,
// and never runs backward.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.After(c.now) {
		c.now = t
	}
}

// Now implements ADK's time provider.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Microsecond)
	return c.now
}
