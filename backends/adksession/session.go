package adksession

import (
	"iter"
	"maps"
	"sync"
	"time"

	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
)

// localSession is what a runner holds during a turn: the session as it was read, and what the turn has appended since.
type localSession struct {
	key   backends.SessionKey
	epoch string

	appending sync.Mutex // held during an append, so that concurrent ones through this object take their turns

	mu      sync.RWMutex
	lastSeq int64
	read    []item           // shared with other sessions, never written to
	own     []*session.Event // appended through this object
	state   map[string]any
	updated time.Time
}

func newSession(key backends.SessionKey, row sessionRow, items []item) *localSession {
	return &localSession{
		key: key, epoch: row.epoch, lastSeq: row.lastSeq, read: items, state: row.state, updated: row.updated,
	}
}

func (s *localSession) ID() string      { return s.key.Session }
func (s *localSession) AppName() string { return s.key.App }
func (s *localSession) UserID() string  { return s.key.User }

func (s *localSession) State() session.State { return (*state)(s) }

// Events returns the events as they are now; later appends do not change it.
func (s *localSession) Events() session.Events {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return events{read: s.read, own: s.own[:len(s.own):len(s.own)]}
}

func (s *localSession) LastUpdateTime() time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.updated
}

// position returns the newest event's sequence number that this object knows of.
func (s *localSession) position() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.lastSeq
}

// appended takes in an event that is stored now, and the state that came with it.
func (s *localSession) appended(event *session.Event, delta map[string]any, seq int64, updated time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.state, delta)
	s.own = append(s.own, event)
	s.lastSeq, s.updated = seq, updated
}

// events is a snapshot, in two parts so that neither a Get nor an append copies what was there before.
type events struct {
	read []item
	own  []*session.Event
}

func (e events) Len() int { return len(e.read) + len(e.own) }

// At returns nil outside of the list.
func (e events) At(i int) *session.Event {
	switch {
	case i < 0 || i >= e.Len():
		return nil
	case i < len(e.read):
		return e.read[i].event
	}
	return e.own[i-len(e.read)]
}

func (e events) All() iter.Seq[*session.Event] {
	return func(yield func(*session.Event) bool) {
		for i := range e.Len() {
			if !yield(e.At(i)) {
				return
			}
		}
	}
}

// state is a session's state. What is set here stays in this object; an event's delta is what is stored.
type state localSession

func (s *state) Get(name string) (any, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	value, ok := s.state[name]
	if !ok {
		return nil, session.ErrStateKeyNotExist
	}
	return value, nil
}

func (s *state) Set(name string, value any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state[name] = value
	return nil
}

// All iterates over the state as it is now.
func (s *state) All() iter.Seq2[string, any] {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.All(maps.Clone(s.state))
}
