package inmemory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

// DeleteObservationsBySession implements [backends.Deleter].
func (s *Store) DeleteObservationsBySession(ctx context.Context, key backends.SessionKey) error {
	return s.deleteNotes(ctx, key, func(n backends.StoredNote) bool { return n.Generation == 0 })
}

// DeleteReflectionsBySession implements [backends.Deleter].
func (s *Store) DeleteReflectionsBySession(ctx context.Context, key backends.SessionKey) error {
	return s.deleteNotes(ctx, key, func(n backends.StoredNote) bool { return n.Generation > 0 })
}

func (s *Store) deleteNotes(ctx context.Context, key backends.SessionKey, drop func(backends.StoredNote) bool) error {
	if err := s.begin(ctx, key.Validate()); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if own := s.sessions[key]; own != nil && !own.deleted {
		s.forget(key.App, key.User, func(r backends.Ref) bool {
			return r.Session == key.Session && r.Kind != backends.KindMessage && drop(*own.note(r.ID))
		})
		own.notes = slices.DeleteFunc(own.notes, drop)
		s.touch(key, own)
	}
	return nil
}

// DeleteSession implements [backends.Deleter].
func (s *Store) DeleteSession(ctx context.Context, key backends.SessionKey) error {
	if err := s.begin(ctx, key.Validate()); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.bury(key)
	return nil
}

// DeleteUser implements [backends.Deleter].
func (s *Store) DeleteUser(ctx context.Context, app, user string) error {
	if err := s.begin(ctx, backends.ValidateID("app", app), backends.ValidateID("user", user)); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.buryAll(userTombstone(app, user), func(k backends.SessionKey) bool { return k.App == app && k.User == user })
	return nil
}

// DeleteApp implements [backends.Deleter].
func (s *Store) DeleteApp(ctx context.Context, app string) error {
	if err := s.begin(ctx, backends.ValidateID("app", app)); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.buryAll(appTombstone(app), func(k backends.SessionKey) bool { return k.App == app })
	return nil
}

// buryAll buries every session that matches and leaves a tombstone for those that were never written.
func (s *Store) buryAll(tombstone backends.SessionKey, match func(backends.SessionKey) bool) {
	s.bury(tombstone)
	for key := range s.sessions {
		if match(key) {
			s.bury(key)
		}
	}
	for key := range s.leases {
		if match(key) {
			delete(s.leases, key)
		}
	}
	for t := range s.libraries {
		if match(backends.SessionKey{App: t.app, User: t.user}) {
			delete(s.libraries, t)
		}
	}
}

// Sweep implements [backends.Deleter].
func (s *Store) Sweep(ctx context.Context, idle time.Duration) (int, error) {
	var fault error
	if idle < 0 {
		fault = fmt.Errorf("%w: idle is negative", backends.ErrInvalid)
	}
	if err := s.begin(ctx, fault); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	swept, now := 0, s.now()
	for key, state := range s.sessions {
		switch age := now.Sub(state.updatedAt); {
		case state.deleted && age > backends.TombstoneTTL:
			delete(s.sessions, key)
		case !state.deleted && idle > 0 && age > idle:
			s.bury(key)
			swept++
		}
	}
	for key, l := range s.leases {
		if !l.expires.After(now) {
			delete(s.leases, key)
		}
	}
	return swept, nil
}
