package main

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"sync"
	"time"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/token"
)

// A probe stands on both sides of the memory's model wrapper: outside it sees the request as ADK built it, the whole
// history, and inside what is really sent. It knows nothing else of the library but the notes in the store.
type probe struct {
	counter token.Counter
	store   backends.Store
	keys    *fingerprints

	mu       sync.Mutex
	notes    map[backends.SessionKey]*noteBook
	previous map[string]prompt // by agent
	sums     sums
}

// sums is what a probe has measured so far.
type sums struct {
	calls                      int
	history, sent              int
	peakHistory, peakSent      int
	uncovered, leftOut, broken int
	stable                     []float64
	wrapper                    []time.Duration
}

func newProbe(store backends.Store) *probe {
	return &probe{
		counter:  token.Estimator{},
		store:    store,
		keys:     newFingerprints(),
		notes:    map[backends.SessionKey]*noteBook{},
		previous: map[string]prompt{},
	}
}

// wrap puts the probe around and inside the wrapper that turns a plain model into one with memory.
func (p *probe) wrap(memory func(model.LLM) model.LLM, plain model.LLM) model.LLM {
	return outside{p, memory(inside{p, plain}), plain.Name()}
}

// call is one model call on its way through the wrapper.
type call struct {
	key     backends.SessionKey
	view    viewer
	events  []*session.Event
	full    prompt
	keys    *fingerprints
	tools   int             // tokens of the tool declarations
	active  map[string]bool // the notes that were active when the call began
	lastSeq int64           // the newest note at that time
	entered time.Time
}

type callKey struct{}

type outside struct {
	probe *probe
	model model.LLM
	name  string
}

func (o outside) Name() string { return o.name }

func (o outside) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		ic, ok := ctx.(agent.InvocationContext)
		if !ok || ic.Session() == nil {
			yield(nil, errors.New("the model was called outside of an ADK run"))
			return
		}
		c, err := o.probe.enter(ic, req)
		if err != nil {
			yield(nil, err)
			return
		}
		// WithContext keeps the context an ADK invocation's, as ADK itself does for its spans.
		ctx := ic.WithContext(context.WithValue(ic, callKey{}, c))
		c.entered = time.Now()
		for resp, err := range o.model.GenerateContent(ctx, req, stream) {
			if !yield(resp, err) {
				return
			}
		}
	}
}

type inside struct {
	probe *probe
	model model.LLM
}

func (i inside) Name() string { return i.model.Name() }

func (i inside) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		arrived := time.Now()
		c, ok := ctx.Value(callKey{}).(*call)
		if !ok {
			yield(nil, errors.New("the wrapper lost the values of the call's context"))
			return
		}
		if err := i.probe.measure(ctx, c, req, arrived.Sub(c.entered)); err != nil {
			yield(nil, err)
			return
		}
		for resp, err := range i.model.GenerateContent(ctx, req, stream) {
			if !yield(resp, err) {
				return
			}
		}
	}
}

// enter notes the request as ADK built it.
func (p *probe) enter(ic agent.InvocationContext, req *model.LLMRequest) (*call, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := ic.Session()
	c := &call{
		key:   backends.SessionKey{App: s.AppName(), User: s.UserID(), Session: s.ID()},
		view:  viewer{ic.Agent().Name(), backends.Stream{Branch: ic.Branch(), Scope: ic.IsolationScope()}},
		full:  p.prompt(req),
		keys:  p.keys,
		tools: p.toolTokens(req),
	}
	for e := range s.Events().All() {
		c.events = append(c.events, e)
	}
	book, err := p.book(ic, c.key)
	if err != nil {
		return nil, err
	}
	c.active, c.lastSeq = book.active()
	return c, nil
}

// measure compares what is sent with what ADK built.
func (p *probe) measure(ctx context.Context, c *call, req *model.LLMRequest, wrapper time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	book, err := p.book(ctx, c.key)
	if err != nil {
		return err
	}
	sent := p.prompt(req)
	history, tokens := c.full.tokens+c.tools, sent.tokens+p.toolTokens(req)
	p.sums.calls++
	p.sums.history += history
	p.sums.sent += tokens
	p.sums.peakHistory = max(p.sums.peakHistory, history)
	p.sums.peakSent = max(p.sums.peakSent, tokens)
	p.sums.wrapper = append(p.sums.wrapper, wrapper)

	kept := align(c.full, sent)
	cover := coverage(c, sent, kept, book)
	p.sums.uncovered += cover.uncovered
	p.sums.leftOut += cover.leftOut
	p.sums.broken += brokenPairs(c.full, sent, kept)

	who := c.key.String() + " " + c.view.agent + " " + c.view.stream.Branch
	if before, ok := p.previous[who]; ok && sent.tokens > 0 {
		p.sums.stable = append(p.sums.stable, float64(sent.samePrefix(before, p.counter))/float64(sent.tokens))
	}
	p.previous[who] = sent
	return nil
}

// book returns the session's notes as they are now.
func (p *probe) book(ctx context.Context, key backends.SessionKey) (*noteBook, error) {
	book, ok := p.notes[key]
	if !ok {
		book = newNoteBook(key)
		p.notes[key] = book
	}
	return book, book.refresh(ctx, p.store)
}

// A prompt is a request in the form in which it is measured: the instruction's text, then the contents.
type prompt struct {
	system   string
	contents []*genai.Content
	keys     []uint64 // fingerprints of the contents
	costs    []int    // tokens of each content
	tokens   int      // of instruction and contents
}

func (p *probe) prompt(req *model.LLMRequest) prompt {
	var m prompt
	if req.Config != nil && req.Config.SystemInstruction != nil {
		m.system = textOf(req.Config.SystemInstruction)
		m.tokens = token.Content(p.counter, req.Config.SystemInstruction)
	}
	for _, content := range req.Contents {
		cost := token.Content(p.counter, content)
		m.contents = append(m.contents, content)
		m.keys = append(m.keys, p.keys.content(content))
		m.costs = append(m.costs, cost)
		m.tokens += cost
	}
	return m
}

// samePrefix is the number of tokens at the start that are the same as in the prompt before.
func (m prompt) samePrefix(before prompt, counter token.Counter) int {
	if m.system != before.system {
		n := 0
		for n < len(m.system) && n < len(before.system) && m.system[n] == before.system[n] {
			n++
		}
		return counter.Count(strings.ToValidUTF8(m.system[:n], ""))
	}
	same := m.tokens
	for _, cost := range m.costs {
		same -= cost // what is left is the instruction
	}
	for i := range m.keys {
		if i >= len(before.keys) || m.keys[i] != before.keys[i] {
			break
		}
		same += m.costs[i]
	}
	return same
}

// toolTokens counts the declarations of the tools, the same way for the whole history and for what is sent.
func (p *probe) toolTokens(req *model.LLMRequest) int {
	if req.Config == nil || len(req.Config.Tools) == 0 {
		return 0
	}
	encoded, err := json.Marshal(req.Config.Tools)
	if err != nil {
		return 0
	}
	return p.counter.Count(string(encoded))
}

func textOf(content *genai.Content) string {
	var text strings.Builder
	for _, part := range content.Parts {
		if part != nil && part.Text != "" {
			text.WriteString(part.Text)
			text.WriteByte('\n')
		}
	}
	return text.String()
}
