package rawobs

import (
	"container/list"
	"log/slog"
	"sync"
)

// Limits of a [Registry] that names none.
const (
	DefaultMaxSessions = 10_000
	DefaultMaxBytes    = 64 << 20
)

// Config bounds a Registry. In every field 0 or less means the default.
type Config struct {
	Size        int          // outputs kept of each session; default [DefaultSize]
	MaxSessions int          // sessions remembered; default [DefaultMaxSessions]
	MaxBytes    int          // of outputs, over all sessions; default [DefaultMaxBytes]
	Logger      *slog.Logger // default slog.Default()
}

// Registry holds the raw outputs of many sessions. Past a limit it forgets the sessions that were used longest ago as a
// whole, never a part of an output, and never the one that was just written to. What it forgets is still in the
// conversation. It is safe for concurrent use.
type Registry struct {
	cfg Config

	mu       sync.Mutex
	sessions map[string]*list.Element
	recent   list.List // of *session, most recently used first
	bytes    int
}

type session struct {
	key    string
	buffer *Buffer
	bytes  int
}

// NewRegistry returns an empty Registry. A Size below [MinAdvisedSize] is warned about once.
func NewRegistry(cfg Config) *Registry {
	cfg.Size = checkSize(cfg.Size, cfg.Logger)
	if cfg.MaxSessions <= 0 {
		cfg.MaxSessions = DefaultMaxSessions
	}
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = DefaultMaxBytes
	}
	return &Registry{cfg: cfg, sessions: make(map[string]*list.Element)}
}

// Session returns the session's view. The key must tell apart all sessions of all users and apps. It costs nothing
// until something is recorded.
func (r *Registry) Session(key string) *AgentContext {
	return &AgentContext{registry: r, key: key}
}

// Len is the number of sessions remembered.
func (r *Registry) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sessions)
}

func (r *Registry) record(key string, e Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	el := r.sessions[key]
	if el == nil {
		el = r.recent.PushFront(&session{key: key, buffer: newBuffer(r.cfg.Size)})
		r.sessions[key] = el
	}
	r.recent.MoveToFront(el)
	s := el.Value.(*session)
	grown := s.buffer.push(e)
	s.bytes += grown
	r.bytes += grown
	for len(r.sessions) > 1 && (len(r.sessions) > r.cfg.MaxSessions || r.bytes > r.cfg.MaxBytes) {
		r.remove(r.recent.Back())
	}
}

// lookup returns the session's buffer, or an empty one when nothing is remembered.
func (r *Registry) lookup(key string) *Buffer {
	r.mu.Lock()
	defer r.mu.Unlock()
	el := r.sessions[key]
	if el == nil {
		return newBuffer(r.cfg.Size)
	}
	r.recent.MoveToFront(el)
	return el.Value.(*session).buffer
}

func (r *Registry) forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if el := r.sessions[key]; el != nil {
		r.remove(el)
	}
}

// remove forgets a session. The caller holds mu.
func (r *Registry) remove(el *list.Element) {
	s := r.recent.Remove(el).(*session)
	delete(r.sessions, s.key)
	r.bytes -= s.bytes
}

// AgentContext is one session's view of its recent raw tool outputs. It holds no state of its own: every view of a
// session shows the same outputs, over all its turns. It is safe for concurrent use.
type AgentContext struct {
	registry *Registry
	key      string
}

// RecordObservation adds a tool's output, exactly as the tool gave it. The oldest one leaves when there are more than
// the registry's Size.
func (c *AgentContext) RecordObservation(callID, tool, text string) {
	c.registry.record(c.key, Entry{CallID: callID, Tool: tool, Text: text})
}

// RecentObservations returns a copy of the session's outputs, oldest first; nil when there are none.
func (c *AgentContext) RecentObservations() []Entry { return c.registry.lookup(c.key).All() }

// ContextString is [Buffer.ContextString] of the session.
func (c *AgentContext) ContextString() string { return c.registry.lookup(c.key).ContextString() }

// Clear forgets the session's outputs.
func (c *AgentContext) Clear() { c.registry.forget(c.key) }
