package middleware

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/genai"

	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/prompt"
	"github.com/adkmemory/adkmemory/middleware/token"
	"github.com/adkmemory/adkmemory/middleware/window"
)

// turn is one model call on its way out.
type turn struct {
	m       *Middleware
	request *model.LLMRequest // what to send: the caller's own request when memory has nothing to add or to leave out
	model   string
}

// sampling: the first calls teach the calibration most; later ones only keep it current.
const (
	sampleAll   = 16
	sampleEvery = 16
)

// prepare puts memory into a request. It never fails: without a session key, and after any fault, which is logged and
// counted, the request goes out as it came.
func (m *Middleware) prepare(ctx context.Context, req *model.LLMRequest, llm model.LLM) (t turn) {
	t = turn{m: m, request: req}
	if req == nil || skipsMemory(ctx) {
		return t
	}
	defer func() {
		if r := recover(); r != nil {
			m.fault(ctx, &m.stats.panics, "memory panicked; the request goes out without it", fmt.Errorf("%v", r), "stack", string(debug.Stack()))
			t.request = req
		}
	}()
	c, ok := m.resolve(ctx)
	if !ok {
		return t
	}
	return m.prepareFor(ctx, c, req, llm)
}

// prepareFor is prepare for a caller that is known.
func (m *Middleware) prepareFor(ctx context.Context, c caller, req *model.LLMRequest, llm model.LLM) turn {
	t := turn{m: m, request: req, model: req.Model}
	s := m.session(c.key)
	snap, err := m.load(ctx, c.key, s)
	if err != nil {
		m.fault(ctx, &m.stats.loadFailures, "memory could not be read; the turn goes on with the raw history", err, "session", c.key.String())
		return t
	}
	var out parts
	if c.readOnly {
		out = parts{contents: req.Contents, section: m.readSection(s, snap, c)}
	} else {
		out = m.compose(ctx, c, s, snap, req, llm)
	}
	t.request = m.assemble(req, out)
	return t
}

// parts is what a request is assembled from.
type parts struct {
	contents []*genai.Content
	section  prompt.Section
}

// load returns the session's snapshot, the cached one when the store says that nothing changed.
func (m *Middleware) load(ctx context.Context, key backends.SessionKey, s *sessionState) (*backends.Snapshot, error) {
	s.mu.Lock()
	have := s.snap
	s.mu.Unlock()
	var stamp backends.Stamp
	if have != nil {
		stamp = have.Stamp
	}
	ctx, cancel := context.WithTimeout(ctx, m.cfg.LoadTimeout)
	defer cancel()
	snap, err := m.deps.Store.Load(ctx, key, stamp)
	if err != nil {
		return nil, err
	}
	if snap == nil {
		if have == nil {
			return &backends.Snapshot{}, nil
		}
		return have, nil
	}
	return snap, nil
}

// compose triggers the background where due, trims the contents and builds the memory section. When un-observed messages
// would pass the hard limit it waits, for at most MaxWait, until the background has caught up.
func (m *Middleware) compose(ctx context.Context, c caller, s *sessionState, snap *backends.Snapshot, req *model.LLMRequest, llm model.LLM) parts {
	v := window.View{Agent: c.agent, Stream: c.stream}
	var events window.Events
	var sources window.Sources
	if c.events != nil {
		events = c.events
		sources = window.Map(req.Contents, events, v)
	} else {
		own := newContentEvents(req.Contents)
		events, sources = own, own.sources()
	}
	sel, section, busy := m.choose(ctx, c, s, snap, req, llm, events, sources, v, false)
	if sel.Over && busy != nil {
		m.stats.waits.Add(1)
		deadline := time.NewTimer(m.cfg.MaxWait)
		defer deadline.Stop()
		for sel.Over && busy != nil {
			select {
			case <-busy:
				if newer, err := m.load(ctx, c.key, s); err == nil {
					snap = newer
				}
				sel, section, busy = m.choose(ctx, c, s, snap, req, llm, events, sources, v, false)
				continue
			case <-deadline.C:
			case <-ctx.Done():
			}
			break
		}
	}
	if sel.Over {
		sel, section, _ = m.choose(ctx, c, s, snap, req, llm, events, sources, v, true)
	}
	m.account(ctx, c.key, sel, section)
	return parts{contents: sel.Contents, section: section}
}

// choose does under the session's lock what depends on its state. It returns a channel that closes when the background
// has finished a run for the session, nil when it does nothing.
func (m *Middleware) choose(ctx context.Context, c caller, s *sessionState, snap *backends.Snapshot, req *model.LLMRequest,
	llm model.LLM, events window.Events, sources window.Sources, v window.View, force bool,
) (window.Selection, prompt.Section, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sync(events, snap, m.eventTokens)
	m.trigger(ctx, c.key, s, events, llm)
	busy, working := m.buffer.Busy(c.key)
	if !working {
		busy = nil
	}
	scale := m.calibrate.Scale(req.Model)
	vs := s.view(v)
	sel := window.Select(window.Request{
		Contents: req.Contents,
		Sources:  sources,
		Events:   events,
		Observed: func(i int) bool { return s.observed(events, i) },
		Tokens:   func(i int) int { return token.Content(m.deps.Counter, req.Contents[i]) },
		Budget:   int(float64(m.cfg.MaxMessageTokenBudget) / scale),
		Hard:     int(float64(m.cfg.HardMessageTokenLimit) / scale),
		Raw:      m.rawPinned(),
		Force:    force,
	}, vs.cut)
	vs.cut = sel.Cut
	return sel, m.section(s, vs, v, snap, events, sel, scale), busy
}

func (m *Middleware) rawPinned() int {
	if m.cfg.RawObservations == RawOff {
		return 0
	}
	return m.cfg.RawObservationBuffer
}

func (m *Middleware) eventTokens(e *session.Event) int {
	return token.Content(m.deps.Counter, window.ContentOf(e))
}

// trigger hands the un-observed messages to the background when they are past the threshold, and not again before as
// much has come since while it works. The caller holds the session's lock.
func (m *Middleware) trigger(ctx context.Context, key backends.SessionKey, s *sessionState, events window.Events, llm model.LLM) {
	if s.pending() <= m.cfg.MessageTokenThreshold {
		return
	}
	if _, busy := m.buffer.Busy(key); busy && s.since <= m.cfg.MessageTokenThreshold {
		return
	}
	j := job{epoch: s.snap.Epoch, link: trace.SpanContextFromContext(ctx)}
	if llm != nil {
		j.model = unwrap(llm)
	}
	m.backlog(&j, s, events)
	if m.buffer.Trigger(key, j) {
		s.since = 0
	}
}

// assemble returns a copy of the request with the parts in it, or the request itself when they change nothing.
func (m *Middleware) assemble(req *model.LLMRequest, p parts) *model.LLMRequest {
	if p.section.Text == "" && len(p.contents) == len(req.Contents) {
		return req
	}
	out := *req
	out.Contents = p.contents
	if p.section.Text != "" {
		var cfg genai.GenerateContentConfig
		if req.Config != nil {
			cfg = *req.Config
		}
		cfg.SystemInstruction = prompt.Append(cfg.SystemInstruction, p.section.Text)
		out.Config = &cfg
	}
	return &out
}

// usage learns from what the model reports how far the estimate is off.
func (t turn) usage(u *genai.GenerateContentResponseUsageMetadata) {
	if u == nil || t.model == "" || u.PromptTokenCount <= 0 {
		return
	}
	if n := t.m.samples.Add(1); n > sampleAll && n%sampleEvery != 0 {
		return
	}
	t.m.calibrate.Learn(t.model, t.m.requestTokens(t.request), int(u.PromptTokenCount))
}

// requestTokens estimates a whole request: system instruction, contents and tool declarations.
func (m *Middleware) requestTokens(req *model.LLMRequest) int {
	total := 0
	for _, c := range req.Contents {
		total += token.Content(m.deps.Counter, c)
	}
	if cfg := req.Config; cfg != nil {
		total += token.Content(m.deps.Counter, cfg.SystemInstruction)
		for _, t := range cfg.Tools {
			if t == nil {
				continue
			}
			for _, d := range t.FunctionDeclarations {
				total += m.deps.Counter.Count(compactJSON(d))
			}
		}
	}
	return total
}
