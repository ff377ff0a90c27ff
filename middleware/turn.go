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
func (m *Middleware) prepare(ctx context.Context, req *model.LLMRequest, llm model.LLM) turn {
	t := turn{m: m, request: req}
	if req == nil || skipsMemory(ctx) {
		return t
	}
	m.safely(ctx, func() {
		if done, ok := m.prepared(ctx, req); ok {
			t = done
		} else if c, ok := m.resolve(ctx); ok {
			t = m.prepareFor(ctx, c, req, llm)
		}
	})
	return t
}

// safely runs what must never break a turn: a panic is logged and counted.
func (m *Middleware) safely(ctx context.Context, f func()) {
	defer func() {
		if r := recover(); r != nil {
			m.fault(ctx, &m.stats.panics, "memory panicked; the turn goes on without it", fmt.Errorf("%v", r), "stack", string(debug.Stack()))
		}
	}()
	f()
}

// prepareFor is prepare for a caller that is known. llm is nil when the caller does not know it.
func (m *Middleware) prepareFor(ctx context.Context, c caller, req *model.LLMRequest, llm model.LLM) turn {
	t := turn{m: m, request: req, model: req.Model}
	var query string
	if len(m.layers) > 0 {
		query = c.query(ctx, req) // before the context loses its type
		if m.deps.Redactor != nil {
			query = m.deps.Redactor.Redact(query)
		}
	}
	ctx, a := m.telemetry.start(ctx, stageAssemble, c.key, trace.SpanContext{})
	var err error
	defer func() { a.end(err) }()
	s := m.session(c.key)
	retrieved := m.retrieve(ctx, c.key, query)
	snap, err := m.load(ctx, c.key, s)
	knowledge := retrieved()
	if err != nil {
		m.loadFault(ctx, c.key, err)
		t.request = m.assemble(req, req.Contents, knowledge)
		return t
	}
	if llm != nil {
		s.mu.Lock()
		s.model = unwrap(llm)
		s.mu.Unlock()
	}
	if c.readOnly {
		t.request = m.assemble(req, req.Contents, m.order(knowledge, m.readSection(s, snap, c).Text, "")...)
	} else {
		t.request = m.compose(ctx, c, s, snap, req, knowledge)
	}
	return t
}

func (m *Middleware) loadFault(ctx context.Context, key backends.SessionKey, err error) {
	m.fault(ctx, &m.stats.loadFailures, "memory could not be read; the turn goes on with the raw history", err, "session", key.String())
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
	begin := time.Now()
	defer func() { m.telemetry.metrics.stages[stageLoad].record(time.Since(begin).Seconds()) }()
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
func (m *Middleware) compose(ctx context.Context, c caller, s *sessionState, snap *backends.Snapshot, req *model.LLMRequest, knowledge string) *model.LLMRequest {
	call := call{caller: c, view: viewOf(c), request: req}
	if call.events = c.events; c.events == nil {
		call.events = newContentEvents(req.Contents)
	}
	d := m.decide(ctx, call, s, snap, false)
	if d.window.Over && d.busy != nil {
		m.stats.waits.Add(1)
		deadline := time.NewTimer(m.cfg.MaxWait)
		defer deadline.Stop()
		for waiting := true; waiting && d.window.Over && d.busy != nil; {
			select {
			case <-d.busy:
				newer, err := m.load(ctx, c.key, s)
				if err != nil || newer.Stamp == snap.Stamp {
					pause(ctx, retryPause) // the run achieved nothing: do not drive the next one in a loop
				} else {
					snap = newer
				}
				d = m.decide(ctx, call, s, snap, false)
			case <-deadline.C:
				waiting = false
			case <-ctx.Done():
				waiting = false
			}
		}
	}
	if d.window.Over {
		d = m.decide(ctx, call, s, snap, true)
	}
	m.account(ctx, c.key, len(req.Contents), d)
	m.record(call, s, d, knowledge)
	return m.assemble(req, d.window.Contents, m.order(knowledge, d.section.Text, d.raw)...)
}

// retryPause keeps a turn that waits at the hard limit from triggering failing runs back to back.
const retryPause = 100 * time.Millisecond

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// call is one request with the events it was made of.
type call struct {
	caller
	view    window.View
	request *model.LLMRequest
	events  window.Events
}

func viewOf(c caller) window.View { return window.View{Agent: c.agent, Stream: c.stream} }

// decision is what to send.
type decision struct {
	window     window.Selection
	section    prompt.Section
	raw        string          // the section of recent tool outputs
	rawLeftOut int             // tool outputs it had no room for
	warn       bool            // the hard limit began to force messages out
	busy       <-chan struct{} // closes when the background has finished a run for the session; nil when it does nothing
}

// decide does under the session's lock what depends on its state.
func (m *Middleware) decide(ctx context.Context, c call, s *sessionState, snap *backends.Snapshot, force bool) (d decision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.sync(c.key, s, c.events, snap)
	m.trigger(ctx, c.key, s, c.events)
	if busy, working := m.buffer.Busy(c.key); working {
		d.busy = busy
	}
	scale := m.calibrate.Scale(c.request.Model)
	budget := int(float64(m.cfg.MaxMessageTokenBudget) / scale)
	var rawTokens int
	d.raw, rawTokens, d.rawLeftOut = m.rawOutputs(c.key, c.events, budget)
	vs := s.view(c.view)
	p := m.mapContents(c, s, vs)
	d.window = window.Select(window.Request{
		Contents: p.contents,
		Sources:  p.sources,
		Events:   c.events,
		Observed: func(i int) bool { return s.observed(c.events, i) },
		Tokens:   func(i int) int { return m.tokensOf(p.contents[i]) },
		Budget:   budget - rawTokens,
		Hard:     int(float64(m.cfg.HardMessageTokenLimit) / scale),
		Raw:      m.rawPinned(),
		Force:    force,
	}, vs.cut)
	vs.cut = d.window.Cut
	if !d.window.Over {
		d.warn = d.window.Forced > 0 && !vs.forcing
		vs.forcing = d.window.Forced > 0
	}
	vs.memo.remember(c, s.generation, p, d.window)
	d.section = m.section(s, vs, c.view, snap, c.events, d.window, scale)
	return d
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
func (m *Middleware) trigger(ctx context.Context, key backends.SessionKey, s *sessionState, events window.Events) {
	if s.pending() <= m.cfg.MessageTokenThreshold {
		return
	}
	if _, busy := m.buffer.Busy(key); busy && s.since <= m.cfg.MessageTokenThreshold {
		return
	}
	j := job{epoch: s.snap.Epoch, model: s.model, link: trace.SpanContextFromContext(ctx), begin: time.Now()}
	m.backlog(&j, s, events)
	if m.buffer.Trigger(key, j) {
		s.since = 0
	} else {
		m.stats.droppedTriggers.Add(1)
	}
}

// assemble returns a copy of the request with other contents and with the sections behind its instruction, or the
// request itself when that changes nothing.
func (m *Middleware) assemble(req *model.LLMRequest, contents []*genai.Content, sections ...string) *model.LLMRequest {
	var before *genai.Content
	if req.Config != nil {
		before = req.Config.SystemInstruction
	}
	after := prompt.Append(before, sections...)
	if after == before && len(contents) == len(req.Contents) {
		return req
	}
	out := *req
	out.Contents = contents
	if after != before {
		var cfg genai.GenerateContentConfig
		if req.Config != nil {
			cfg = *req.Config
		}
		cfg.SystemInstruction = after
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
