package adkv1

import (
	"context"
	"iter"
	"sync"

	v1agent "google.golang.org/adk/agent"
	v1session "google.golang.org/adk/session"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware"
)

// SessionKeyFromContext is middleware.SessionKeyFromContext for the contexts of the first version's invocations,
// callbacks and tools.
func SessionKeyFromContext(ctx context.Context) (backends.SessionKey, bool) {
	if key, ok := middleware.SessionKeyFromContext(ctx); ok {
		return key, true
	}
	var key backends.SessionKey
	switch ctx := ctx.(type) {
	case v1agent.ReadonlyContext:
		key = backends.SessionKey{App: ctx.AppName(), User: ctx.UserID(), Session: ctx.SessionID()}
	case v1agent.InvocationContext:
		if s := ctx.Session(); s != nil {
			key = backends.SessionKey{App: s.AppName(), User: s.UserID(), Session: s.ID()}
		}
	}
	return key, key.Validate() == nil
}

// invocation shows an invocation of the first version as one of the second, as far as the middleware looks.
type invocation struct{ v1agent.InvocationContext }

var _ agent.InvocationContext = invocation{}

func (i invocation) Agent() agent.Agent {
	if a := i.InvocationContext.Agent(); a != nil {
		return named{name: a.Name()}
	}
	return nil
}

func (i invocation) Session() session.Session {
	if s := i.InvocationContext.Session(); s != nil {
		return upgradedSession{v1: s, events: &events{v1: s.Events(), made: make(map[int]*session.Event)}}
	}
	return nil
}

func (i invocation) WithContext(ctx context.Context) agent.InvocationContext {
	return invocation{i.InvocationContext.WithContext(ctx)}
}

func (invocation) Artifacts() agent.Artifacts                                          { return nil }
func (invocation) Memory() agent.Memory                                                { return nil }
func (invocation) RunConfig() *agent.RunConfig                                         { return nil }
func (invocation) IsolationScope() string                                              { return "" }
func (invocation) ResumedInput(string) (any, bool)                                     { return nil, false }
func (i invocation) WithICDelta(*agent.InvocationContextDelta) agent.InvocationContext { return i }

// named is an agent of which only the name is known.
type named struct {
	agent.Agent
	name string
}

func (n named) Name() string { return n.name }

// upgradedSession is a session of which only identity and events are known.
type upgradedSession struct {
	session.Session
	v1     v1session.Session
	events *events
}

func (s upgradedSession) ID() string             { return s.v1.ID() }
func (s upgradedSession) AppName() string        { return s.v1.AppName() }
func (s upgradedSession) UserID() string         { return s.v1.UserID() }
func (s upgradedSession) Events() session.Events { return s.events }

// events converts the events that are looked at, each once: a long history costs nothing.
type events struct {
	v1   v1session.Events
	mu   sync.Mutex
	made map[int]*session.Event
}

func (e *events) Len() int { return e.v1.Len() }

func (e *events) At(i int) *session.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	if made, ok := e.made[i]; ok {
		return made
	}
	made := upgradeEvent(e.v1.At(i))
	e.made[i] = made
	return made
}

func (e *events) All() iter.Seq[*session.Event] {
	return func(yield func(*session.Event) bool) {
		for i := range e.Len() {
			if !yield(e.At(i)) {
				return
			}
		}
	}
}

func upgradeEvent(e *v1session.Event) *session.Event {
	if e == nil {
		return nil
	}
	return &session.Event{
		LLMResponse: model.LLMResponse(e.LLMResponse),
		ID:          e.ID, Timestamp: e.Timestamp, InvocationID: e.InvocationID, Branch: e.Branch, Author: e.Author,
		Actions: session.EventActions{
			StateDelta: e.Actions.StateDelta, ArtifactDelta: e.Actions.ArtifactDelta, SkipSummarization: e.Actions.SkipSummarization,
			TransferToAgent: e.Actions.TransferToAgent, Escalate: e.Actions.Escalate,
		},
		LongRunningToolIDs: e.LongRunningToolIDs,
	}
}
