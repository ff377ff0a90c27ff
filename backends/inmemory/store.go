// Package inmemory is the reference implementation of [backends.Store]: everything in maps behind one mutex, gone with
// the process. It is for tests, for trying things out, and to read what the contracts mean. Start with [New].
package inmemory

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

// Store keeps memory in the process. It is safe for concurrent use.
type Store struct {
	now func() time.Time

	mu     sync.Mutex
	closed bool
	// sessions also holds the tombstones of deleted users and apps, under keys whose session (and user) is empty, which
	// no caller can name.
	sessions map[backends.SessionKey]*session
	leases   map[backends.SessionKey]lease

	libraries map[tenant]*library
}

var _ backends.Store = (*Store)(nil)

type session struct {
	backends.Stamp
	deleted   bool
	updatedAt time.Time
	noteSeq   int64
	cursors   map[backends.Stream]backends.Cursor
	notes     []backends.StoredNote    // by Seq, active and archived
	messages  []backends.StoredMessage // by Seq
}

type lease struct {
	owner   string
	expires time.Time
}

// New returns an empty store that goes by the system's clock.
func New() *Store { return NewWithClock(time.Now) }

// NewWithClock returns an empty store that goes by now. The clock ages sessions, tombstones and leases only; the times
// of messages and notes are the caller's.
func NewWithClock(now func() time.Time) *Store {
	return &Store{
		now:      now,
		sessions: map[backends.SessionKey]*session{},
		leases:   map[backends.SessionKey]lease{},
	}
}

// Close implements [backends.Store].
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// begin checks what every method checks, and takes the lock when it returns nil.
func (s *Store) begin(ctx context.Context, faults ...error) error {
	for _, err := range faults {
		if err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return backends.ErrClosed
	}
	return nil
}

// state returns what stands for the session: its own entry, else the tombstone of its user or app, else an empty one.
func (s *Store) state(key backends.SessionKey) *session {
	own := s.sessions[key]
	return cmp.Or(own, s.sessions[userTombstone(key.App, key.User)], s.sessions[appTombstone(key.App)], &session{})
}

// writable returns the session's own entry for a write that started from epoch, creating or reviving it.
func (s *Store) writable(key backends.SessionKey, epoch string) (*session, error) {
	state := s.state(key)
	if state.Epoch != epoch {
		return nil, backends.ErrConflict
	}
	if own := s.sessions[key]; own != nil && !own.deleted {
		return own, nil
	}
	return &session{
		Stamp:   backends.Stamp{Epoch: cmp.Or(epoch, rand.Text()), Version: state.Version},
		cursors: map[backends.Stream]backends.Cursor{},
	}, nil
}

// touch records a write.
func (s *Store) touch(key backends.SessionKey, state *session) {
	state.Version++
	state.updatedAt = s.now()
	s.sessions[key] = state
}

// bury replaces a session by a tombstone.
func (s *Store) bury(key backends.SessionKey) {
	version := int64(0)
	if own := s.sessions[key]; own != nil {
		version = own.Version
	}
	delete(s.leases, key)
	s.forget(key.App, key.User, func(r backends.Ref) bool { return r.Kind.OfSession() && r.Session == key.Session })
	s.touch(key, &session{Stamp: backends.Stamp{Epoch: rand.Text(), Version: version}, deleted: true})
}

func userTombstone(app, user string) backends.SessionKey {
	return backends.SessionKey{App: app, User: user}
}

func appTombstone(app string) backends.SessionKey { return backends.SessionKey{App: app} }

// Load implements [backends.Loader].
func (s *Store) Load(ctx context.Context, key backends.SessionKey, have backends.Stamp) (*backends.Snapshot, error) {
	if err := s.begin(ctx, key.Validate()); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	state := s.state(key)
	if have == state.Stamp && have != (backends.Stamp{}) {
		return nil, nil
	}
	snap := &backends.Snapshot{Stamp: state.Stamp, Cursors: map[backends.Stream]backends.Cursor{}}
	maps.Copy(snap.Cursors, state.cursors)
	for _, n := range state.notes {
		switch {
		case !n.Active:
		case n.Generation == 0:
			snap.Observations = append(snap.Observations, observation(n))
		default:
			snap.Reflections = append(snap.Reflections, reflection(n))
		}
	}
	return snap, nil
}

func observation(n backends.StoredNote) backends.Observation {
	return backends.Observation{Note: n.Note}
}

func reflection(n backends.StoredNote) backends.Reflection {
	return backends.Reflection{Note: n.Note, Generation: n.Generation, Sources: slices.Clone(n.Sources)}
}
