package middleware

import (
	"context"
	"sync"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/window"
)

// PluginName is the name under which [Middleware.Plugin] registers with a runner.
const PluginName = "adkmemory"

// run is what the plugin knows of an invocation: the callbacks around model calls have no session of their own.
type run struct {
	session session.Session

	mu   sync.Mutex
	last map[window.View]turn // prepared by the plugin and not yet seen by a wrapped model, newest per agent
}

// Plugin gives memory to every agent of a runner, whatever their models are: it is a whole integration of its own. It
// also checks the threshold after each run. Used together with [Middleware.Model], each request gets memory once.
//
// An ADK plugin does not learn which model an agent uses: unless Deps.Model or Config.Model is set, or an agent's model
// is wrapped as well, its notes are extracted instead of written by a model. AgentTool runs have no plugins.
func (m *Middleware) Plugin() (*plugin.Plugin, error) {
	if !m.cfg.Enabled {
		return plugin.New(plugin.Config{Name: PluginName})
	}
	return plugin.New(plugin.Config{
		Name:                PluginName,
		BeforeRunCallback:   m.beforeRun,
		AfterRunCallback:    m.afterRun,
		BeforeModelCallback: m.beforeModel,
		AfterModelCallback:  m.afterModel,
	})
}

func (m *Middleware) beforeRun(ctx agent.InvocationContext) (*genai.Content, error) {
	if sess := sessionOf(ctx); sess != nil {
		m.runs.Add(ctx.InvocationID(), &run{session: sess, last: make(map[window.View]turn)})
	}
	return nil, nil
}

// afterRun checks the threshold once more: the run's last answer came after its last model call. ADK calls it also for a
// run that was abandoned.
func (m *Middleware) afterRun(ctx agent.InvocationContext) {
	r, ok := m.runs.Get(ctx.InvocationID())
	if !ok {
		return
	}
	m.runs.Remove(ctx.InvocationID())
	m.safely(ctx, func() {
		c, ok := m.resolveInvocation(ctx, ctx, r.session)
		if !ok || c.readOnly {
			return
		}
		// The client may have hung up: what it left is still worth a note.
		ctx := context.WithoutCancel(ctx)
		s := m.session(c.key)
		snap, err := m.load(ctx, c.key, s)
		if err != nil {
			m.loadFault(ctx, c.key, err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		m.sync(c.key, s, c.events, snap)
		m.trigger(ctx, c.key, s, c.events)
	})
}

func (m *Middleware) beforeModel(ctx agent.Context, req *model.LLMRequest) (*model.LLMResponse, error) {
	r, ok := m.runs.Get(ctx.InvocationID())
	if !ok || req == nil {
		return nil, nil
	}
	m.safely(ctx, func() {
		c, ok := m.resolveInvocation(ctx, nil, r.session)
		if !ok {
			return
		}
		// Of a callback's context only these methods answer; the others log a complaint.
		c.agent, c.invocationID = ctx.AgentName(), ctx.InvocationID()
		if !c.readOnly {
			c.stream = backends.Stream{Branch: ctx.Branch(), Scope: scopeOf(c.events, c.agent, ctx.Branch())}
		}
		t := m.prepareFor(ctx, c, req, nil)
		req.Contents, req.Config = t.request.Contents, t.request.Config
		t.request = req
		r.mu.Lock()
		r.last[viewOf(c)] = t
		r.mu.Unlock()
	})
	return nil, nil
}

func (m *Middleware) afterModel(ctx agent.Context, resp *model.LLMResponse, err error) (*model.LLMResponse, error) {
	if r, ok := m.runs.Get(ctx.InvocationID()); ok && err == nil && resp != nil && !resp.Partial {
		m.safely(ctx, func() {
			c := caller{agent: ctx.AgentName(), stream: backends.Stream{Branch: ctx.Branch()}}
			c.stream.Scope = scopeOf(r.session.Events(), c.agent, c.stream.Branch)
			if t, ok := r.take(viewOf(c), nil); ok {
				t.usage(resp.UsageMetadata)
			}
		})
	}
	return nil, nil
}

// take returns the turn that the plugin prepared last for the view, if it is the one of req (nil for any), and forgets
// it.
func (r *run) take(v window.View, req *model.LLMRequest) (turn, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, ok := r.last[v]
	if !ok || req != nil && t.request != req {
		return turn{}, false
	}
	delete(r.last, v)
	return t, true
}

// prepared returns the turn of a request that the plugin has prepared already.
func (m *Middleware) prepared(ctx context.Context, req *model.LLMRequest) (turn, bool) {
	ic, ok := ctx.(agent.InvocationContext)
	if !ok {
		return turn{}, false
	}
	r, ok := m.runs.Get(ic.InvocationID())
	if !ok {
		return turn{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for v, t := range r.last {
		if t.request == req {
			delete(r.last, v)
			return t, true
		}
	}
	return turn{}, false
}

// scopeOf finds the isolation scope in which an agent runs, which a callback's context does not tell: that of the newest
// event of its own on the same branch, or of the newest delegation to it.
func scopeOf(events window.Events, name, branch string) string {
	done := make(map[string]bool)
	for i := events.Len() - 1; i >= 0; i-- {
		e := events.At(i)
		if e == nil || e.Branch != branch && e.Branch != "" {
			continue
		}
		if e.Content != nil {
			for _, p := range e.Content.Parts {
				if p != nil && p.FunctionResponse != nil && p.FunctionResponse.Name == name {
					done[p.FunctionResponse.ID] = true
				}
			}
		}
		if e.Author == name && !done[e.IsolationScope] {
			return e.IsolationScope
		}
		if e.Content == nil {
			continue
		}
		for _, p := range e.Content.Parts {
			if p != nil && p.FunctionCall != nil && p.FunctionCall.Name == name && !done[p.FunctionCall.ID] {
				return p.FunctionCall.ID
			}
		}
	}
	return ""
}
