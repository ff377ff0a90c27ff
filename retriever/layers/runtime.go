package layers

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/adkmemory/adkmemory/retriever"
)

// SessionState is the key of the one item of the runtime context.
const SessionState = "session-state"

// The channels a session may come by.
const (
	ChannelDirect   = "direct"
	ChannelTelegram = "telegram"
	ChannelDiscord  = "discord"
	ChannelSlack    = "slack"
)

// RuntimeState says under which conditions the agent runs.
type RuntimeState struct {
	SessionKey  string // "" before a session is set
	ChannelType string // [ChannelDirect] or one of the others
	ActiveTools int
	Encryption  bool // stored text is encrypted at rest
	Knowledge   bool // knowledge is retrieved
	Memory      bool // the conversation is remembered
}

// RuntimeContextProvider knows the runtime state. Implementations are safe for concurrent use.
type RuntimeContextProvider interface {
	GetRuntimeContext() RuntimeState
}

// SessionScoped is a provider that can be bound to a session. The layer asks for a copy for each call, so that
// concurrent calls never see each other's session.
type SessionScoped interface {
	RuntimeContextProvider

	// ForSession returns a provider of its own whose session is key.
	ForSession(key string) RuntimeContextProvider
}

// RuntimeContextAdapter is a [SessionScoped] provider over fixed settings. It is safe for concurrent use.
type RuntimeContextAdapter struct {
	mu    sync.RWMutex
	state RuntimeState
}

// NewRuntimeContextAdapter returns an adapter for settings; their session and channel are ignored: the channel is
// [ChannelDirect] until SetSession.
func NewRuntimeContextAdapter(settings RuntimeState) *RuntimeContextAdapter {
	settings.SessionKey, settings.ChannelType = "", ChannelDirect
	return &RuntimeContextAdapter{state: settings}
}

// SetSession sets the session, such as "telegram:4711:2". What stands before the first colon is the channel, when it is
// telegram, discord or slack; anything else is [ChannelDirect].
func (a *RuntimeContextAdapter) SetSession(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state.SessionKey, a.state.ChannelType = key, ChannelDirect
	switch prefix, _, _ := strings.Cut(key, ":"); prefix {
	case ChannelTelegram, ChannelDiscord, ChannelSlack:
		a.state.ChannelType = prefix
	}
}

// GetRuntimeContext implements [RuntimeContextProvider].
func (a *RuntimeContextAdapter) GetRuntimeContext() RuntimeState {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.state
}

// ForSession implements [SessionScoped].
func (a *RuntimeContextAdapter) ForSession(key string) RuntimeContextProvider {
	bound := NewRuntimeContextAdapter(a.GetRuntimeContext())
	bound.SetSession(key)
	return bound
}

// Runtime shows the runtime state as one item under the key [SessionState]. p may be nil: then there is none. A
// [SessionScoped] provider is bound to the request's session on a copy; without a session key it is asked as it is.
func Runtime(p RuntimeContextProvider) retriever.Layer { return runtimeContext{p} }

type runtimeContext struct{ provider RuntimeContextProvider }

// Name implements [retriever.Layer].
func (runtimeContext) Name() string { return retriever.RuntimeContext }

// Retrieve implements [retriever.Layer].
func (l runtimeContext) Retrieve(_ context.Context, q retriever.Query) ([]retriever.Item, error) {
	p := l.provider
	if p == nil {
		return nil, nil
	}
	if scoped, ok := p.(SessionScoped); ok && !q.Key.IsZero() {
		p = scoped.ForSession(q.Key.Session)
	}
	s := p.GetRuntimeContext()
	session := s.SessionKey
	if session == "" {
		session = "none"
	}
	return []retriever.Item{{Key: SessionState, Score: 1, Text: fmt.Sprintf(
		"session %s, channel %s, %d active tools, encryption %s, knowledge %s, memory %s",
		session, s.ChannelType, s.ActiveTools, onOff(s.Encryption), onOff(s.Knowledge), onOff(s.Memory))}}, nil
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
