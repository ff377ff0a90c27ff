package middleware

import (
	"context"
	"slices"
	"sync/atomic"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
)

type bindingKey struct{}

// binding is a session key put into a context, and the ADK identity that owns it.
type binding struct {
	key   backends.SessionKey
	owner atomic.Pointer[backends.SessionKey]
}

// admits reports whether a run of the given ADK identity may write under the binding. The first identity to ask owns it;
// a nested run under another identity, such as an AgentTool's, only reads. A call without an ADK identity may write as
// long as no identity owns the binding.
func (b *binding) admits(identity backends.SessionKey) bool {
	if identity.IsZero() {
		return b.owner.Load() == nil
	}
	if b.owner.CompareAndSwap(nil, &identity) {
		return true
	}
	return *b.owner.Load() == identity
}

// WithSessionKey binds a session key to the context. Memory is then read and written under this key instead of the ADK
// invocation's app, user and session. Each call makes a fresh binding: the first ADK identity that resolves it owns it
// and writes; a nested run under another identity (an AgentTool has an app name and a session of its own) only reads.
func WithSessionKey(ctx context.Context, key backends.SessionKey) context.Context {
	return context.WithValue(ctx, bindingKey{}, &binding{key: key})
}

// SessionKeyFromContext resolves the session key at call time: the key bound with [WithSessionKey], else the ADK
// invocation's app, user and session, else none. It never reads a field set at construction.
func SessionKeyFromContext(ctx context.Context) (backends.SessionKey, bool) {
	if b := boundKey(ctx); b != nil {
		return b.key, true
	}
	if key := identityFrom(ctx); key.Validate() == nil {
		return key, true
	}
	return backends.SessionKey{}, false
}

// identityFrom reads the ADK identity from the context of a model call, a callback or a tool. The latter two tell it, but
// have no session: asking them for one logs a complaint. ADK panics where an invocation has no session at all.
func identityFrom(ctx context.Context) (key backends.SessionKey) {
	defer func() {
		if recover() != nil {
			key = backends.SessionKey{}
		}
	}()
	switch ctx := ctx.(type) {
	case agent.ReadonlyContext:
		return backends.SessionKey{App: ctx.AppName(), User: ctx.UserID(), Session: ctx.SessionID()}
	case agent.InvocationContext:
		return identityOf(sessionOf(ctx))
	}
	return key
}

func boundKey(ctx context.Context) *binding {
	b, _ := ctx.Value(bindingKey{}).(*binding)
	if b == nil || b.key.Validate() != nil {
		return nil
	}
	return b
}

// sessionOf returns the invocation's session, or nil. ADK's model callbacks have a context whose session is nil.
func sessionOf(ic agent.InvocationContext) session.Session {
	if ic == nil {
		return nil
	}
	return ic.Session()
}

func identityOf(s session.Session) backends.SessionKey {
	if s == nil {
		return backends.SessionKey{}
	}
	return backends.SessionKey{App: s.AppName(), User: s.UserID(), Session: s.ID()}
}

// caller is who makes a model call, and what of its session can be seen.
type caller struct {
	key          backends.SessionKey
	readOnly     bool
	agent        string
	stream       backends.Stream
	invocationID string
	events       session.Events // nil without an ADK session of the key's own
}

// resolve finds out who calls. It reports false when there is no session key: memory is skipped then (CTX-5).
func (m *Middleware) resolve(ctx context.Context) (caller, bool) {
	ic, _ := ctx.(agent.InvocationContext)
	return m.resolveInvocation(ctx, ic, sessionOf(ic))
}

// resolveInvocation is resolve for callers that got the session elsewhere; ic may be nil.
func (m *Middleware) resolveInvocation(ctx context.Context, ic agent.InvocationContext, sess session.Session) (caller, bool) {
	var c caller
	identity := identityOf(sess)
	if identity.Validate() != nil {
		identity = backends.SessionKey{}
	}
	c.key = identity
	if b := boundKey(ctx); b != nil {
		c.key = b.key
		c.readOnly = !b.admits(identity)
	}
	if c.key.IsZero() {
		return caller{}, false
	}
	app := c.key.App
	if !identity.IsZero() {
		app = identity.App
	}
	if len(m.cfg.AppNames) > 0 && !slices.Contains(m.cfg.AppNames, app) {
		c.readOnly = true
	}
	if ic != nil {
		c.invocationID = ic.InvocationID()
		if !c.readOnly {
			c.stream = backends.Stream{Branch: ic.Branch(), Scope: ic.IsolationScope()}
		}
		if a := ic.Agent(); a != nil {
			c.agent = a.Name()
		}
	}
	if sess != nil && !c.readOnly {
		c.events = sess.Events()
	}
	return c, true
}
