package gormstore

import (
	"context"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

// Lease implements [backends.Leaser].
func (s *Store) Lease(ctx context.Context, key backends.SessionKey, owner string, ttl time.Duration) (bool, error) {
	const op = "adkmemory: lease"
	if err := s.begin(ctx, op, key.Validate(), backends.ValidateLease(owner, ttl)); err != nil {
		return false, err
	}
	res := s.db.WithContext(ctx).Exec(`INSERT INTO adkmemory_leases (app, user_id, session_id, owner, expires_at)
		VALUES (?, ?, ?, ?, `+s.dialect.now+` + ?)
		ON CONFLICT (app, user_id, session_id) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at
		WHERE adkmemory_leases.owner = excluded.owner OR adkmemory_leases.expires_at <= `+s.dialect.now,
		args(key, owner, ttl.Microseconds())...)
	return res.Error == nil && res.RowsAffected == 1, s.fail(ctx, op, res.Error)
}

// Release implements [backends.Leaser].
func (s *Store) Release(ctx context.Context, key backends.SessionKey, owner string) error {
	const op = "adkmemory: release lease"
	if err := s.begin(ctx, op, key.Validate(), backends.ValidateID("owner", owner)); err != nil {
		return err
	}
	return s.fail(ctx, op, s.db.WithContext(ctx).
		Exec(`DELETE FROM adkmemory_leases WHERE `+byOwner+` AND owner = ?`, args(key, owner)...).Error)
}
