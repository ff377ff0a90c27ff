package gormstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
)

// batchSessions bounds what one transaction deletes.
const batchSessions = 100

// DeleteObservationsBySession implements [backends.Deleter].
func (s *Store) DeleteObservationsBySession(ctx context.Context, key backends.SessionKey) error {
	return s.deleteNotes(ctx, "adkmemory: delete observations", key, "generation = 0")
}

// DeleteReflectionsBySession implements [backends.Deleter].
func (s *Store) DeleteReflectionsBySession(ctx context.Context, key backends.SessionKey) error {
	return s.deleteNotes(ctx, "adkmemory: delete reflections", key, "generation > 0")
}

func (s *Store) deleteNotes(ctx context.Context, op string, key backends.SessionKey, match string) error {
	if err := s.begin(ctx, op, key.Validate()); err != nil {
		return err
	}
	return s.write(ctx, op, func(tx *gorm.DB) error {
		res := tx.Exec(`UPDATE adkmemory_sessions SET version = version + 1, updated_at = `+s.dialect.now+`
			WHERE `+byOwner+` AND deleted_at = 0`, args(key)...)
		if res.Error != nil || res.RowsAffected == 0 {
			return res.Error
		}
		if err := forgetNotes(tx, key, match); err != nil {
			return err
		}
		return tx.Exec(`DELETE FROM adkmemory_notes WHERE `+byOwner+` AND `+match, args(key)...).Error
	})
}

// DeleteSession implements [backends.Deleter].
func (s *Store) DeleteSession(ctx context.Context, key backends.SessionKey) error {
	const op = "adkmemory: delete session"
	if err := s.begin(ctx, op, key.Validate()); err != nil {
		return err
	}
	return s.write(ctx, op, func(tx *gorm.DB) error {
		if err := s.bury(tx, key, rand.Text()); err != nil {
			return err
		}
		return purge(tx, []owner{ownerOf(key)})
	})
}

// bury makes the row of a session, or of a user or an app, a tombstone.
func (s *Store) bury(tx *gorm.DB, key backends.SessionKey, epoch string) error {
	return tx.Exec(`INSERT INTO adkmemory_sessions
		(app, user_id, session_id, epoch, version, deleted_at, updated_at, note_seq, message_seq)
		VALUES (?, ?, ?, ?, 1, `+s.dialect.now+`, `+s.dialect.now+`, 0, 0)
		ON CONFLICT (app, user_id, session_id) DO UPDATE SET epoch = excluded.epoch,
			version = adkmemory_sessions.version + 1, deleted_at = excluded.deleted_at, updated_at = excluded.updated_at,
			note_seq = 0, message_seq = 0`, args(key, epoch)...).Error
}

// DeleteUser implements [backends.Deleter].
func (s *Store) DeleteUser(ctx context.Context, app, user string) error {
	const op = "adkmemory: delete user"
	if err := s.begin(ctx, op, backends.ValidateID("app", app), backends.ValidateID("user", user)); err != nil {
		return err
	}
	return s.deleteAll(ctx, op, backends.SessionKey{App: app, User: user}, "app = ? AND user_id = ?", app, user)
}

// DeleteApp implements [backends.Deleter].
func (s *Store) DeleteApp(ctx context.Context, app string) error {
	const op = "adkmemory: delete app"
	if err := s.begin(ctx, op, backends.ValidateID("app", app)); err != nil {
		return err
	}
	return s.deleteAll(ctx, op, backends.SessionKey{App: app}, "app = ?", app)
}

// deleteAll puts up a tombstone for the sessions that have no row, then deletes those that match, batch by batch in
// order of their keys. The tombstone's epoch marks what is done: from then on a session is either still to be deleted,
// or was first written after the deletion began and carries that epoch.
func (s *Store) deleteAll(ctx context.Context, op string, tombstone backends.SessionKey, match string, with ...any) error {
	epoch := rand.Text()
	err := s.write(ctx, op, func(tx *gorm.DB) error {
		if s.dialect.lockDelete != "" {
			if err := tx.Exec(s.dialect.lockDelete, tombstone.App).Error; err != nil {
				return err
			}
		}
		if err := s.bury(tx, tombstone, epoch); err != nil {
			return err
		}
		if err := s.lockAreas(tx, match, with...); err != nil {
			return err
		}
		for _, table := range libraryTables() {
			if err := tx.Exec("DELETE FROM "+table+" WHERE "+match, with...).Error; err != nil {
				return err
			}
		}
		return nil
	})
	var last owner
	for err == nil {
		var buried []owner
		buried, err = s.buryBatch(ctx, op, epoch,
			match+" AND (user_id, session_id) > (?, ?) AND epoch <> ? ORDER BY user_id, session_id LIMIT ?"+s.dialect.lockRows,
			append(slices.Clone(with), last.UserID, last.SessionID, epoch, batchSessions)...)
		if len(buried) == 0 {
			break
		}
		last = slices.MaxFunc(buried, func(a, b owner) int {
			return cmp.Or(strings.Compare(a.UserID, b.UserID), strings.Compare(a.SessionID, b.SessionID))
		})
	}
	return err
}

// buryBatch deletes the sessions that a condition selects and returns them.
func (s *Store) buryBatch(ctx context.Context, op, epoch, match string, with ...any) ([]owner, error) {
	var buried []owner
	err := s.write(ctx, op, func(tx *gorm.DB) error {
		err := tx.Raw(`WITH batch AS (SELECT app, user_id, session_id FROM adkmemory_sessions WHERE `+match+`)
			UPDATE adkmemory_sessions SET epoch = ?, version = version + 1,
				deleted_at = `+s.dialect.now+`, updated_at = `+s.dialect.now+`, note_seq = 0, message_seq = 0
			WHERE (app, user_id, session_id) IN (SELECT app, user_id, session_id FROM batch)
			RETURNING app, user_id, session_id`, append(with, epoch)...).Scan(&buried).Error
		if err != nil || len(buried) == 0 {
			return err
		}
		return purge(tx, buried)
	})
	return buried, err
}

// purge removes every row of the sessions but their tombstones.
func purge(tx *gorm.DB, sessions []owner) error {
	if err := forgetSessions(tx, sessions); err != nil {
		return err
	}
	values := make([]any, 0, 3*len(sessions))
	for _, o := range sessions {
		values = append(values, o.App, o.UserID, o.SessionID)
	}
	list := strings.TrimSuffix(strings.Repeat("(?, ?, ?), ", len(sessions)), ", ")
	for _, table := range sessionTables() {
		err := tx.Exec("DELETE FROM "+table+" WHERE (app, user_id, session_id) IN (VALUES "+list+")", values...).Error
		if err != nil {
			return err
		}
	}
	return nil
}

// Sweep implements [backends.Deleter].
func (s *Store) Sweep(ctx context.Context, idle time.Duration) (int, error) {
	const op = "adkmemory: sweep"
	var fault error
	if idle < 0 {
		fault = fmt.Errorf("%w: idle is negative", backends.ErrInvalid)
	}
	if err := s.begin(ctx, op, fault); err != nil {
		return 0, err
	}
	swept := 0
	for idle > 0 {
		buried, err := s.buryBatch(ctx, op, rand.Text(), "deleted_at = 0 AND updated_at < "+s.dialect.now+" - ? LIMIT ?"+
			s.dialect.skipLocked, idle.Microseconds(), batchSessions)
		if err != nil {
			return swept, err
		}
		if len(buried) == 0 {
			break
		}
		swept += len(buried)
	}
	err := s.deleteRows(ctx, op, "adkmemory_sessions", "deleted_at > 0 AND deleted_at < "+s.dialect.now+" - ?",
		backends.TombstoneTTL.Microseconds())
	if err == nil {
		err = s.deleteRows(ctx, op, "adkmemory_leases", "expires_at < "+s.dialect.now+" - ?", 0)
	}
	return swept, err
}

// deleteRows deletes the rows of a table that match, batch by batch.
func (s *Store) deleteRows(ctx context.Context, op, table, match string, with int64) error {
	for {
		res := s.db.WithContext(ctx).Exec(`WITH batch AS (SELECT app, user_id, session_id FROM `+table+`
				WHERE `+match+` LIMIT ?`+s.dialect.skipLocked+`)
			DELETE FROM `+table+` WHERE (app, user_id, session_id) IN (SELECT app, user_id, session_id FROM batch)`,
			with, batchSessions)
		if res.Error != nil || res.RowsAffected == 0 {
			return s.fail(ctx, op, res.Error)
		}
	}
}
