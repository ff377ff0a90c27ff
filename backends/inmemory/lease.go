package inmemory

import (
	"context"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

// Lease implements [backends.Leaser].
func (s *Store) Lease(ctx context.Context, key backends.SessionKey, owner string, ttl time.Duration) (bool, error) {
	if err := s.begin(ctx, key.Validate(), backends.ValidateLease(owner, ttl)); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	now := s.now()
	if l, held := s.leases[key]; held && l.owner != owner && l.expires.After(now) {
		return false, nil
	}
	s.leases[key] = lease{owner: owner, expires: now.Add(ttl)}
	return true, nil
}

// Release implements [backends.Leaser].
func (s *Store) Release(ctx context.Context, key backends.SessionKey, owner string) error {
	if err := s.begin(ctx, key.Validate(), backends.ValidateID("owner", owner)); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if s.leases[key].owner == owner {
		delete(s.leases, key)
	}
	return nil
}
