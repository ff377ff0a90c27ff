package gormstore

import (
	"context"

	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
)

// state is what stands for a session: its own row, else the tombstone of its user or app, else nothing.
type state struct {
	SessionID string // empty unless the row is the session's own
	Epoch     string
	Version   int64
	DeletedAt int64
}

func (s state) stamp() backends.Stamp {
	return backends.Stamp{Epoch: s.Epoch, Version: s.Version}
}

// readState finds the most specific of at most three rows: the empty ids of tombstones sort last.
func readState(tx *gorm.DB, key backends.SessionKey) (state, error) {
	var found state
	err := tx.Raw(`SELECT session_id, epoch, version, deleted_at FROM adkmemory_sessions
		WHERE app = ? AND user_id IN (?, '') AND session_id IN (?, '')
		ORDER BY user_id DESC, session_id DESC LIMIT 1`, args(key)...).Scan(&found).Error
	return found, err
}

// Load implements [backends.Loader].
func (s *Store) Load(ctx context.Context, key backends.SessionKey, have backends.Stamp) (*backends.Snapshot, error) {
	const op = "adkmemory: load"
	if err := s.begin(ctx, op, key.Validate()); err != nil {
		return nil, err
	}
	db := s.reader.WithContext(ctx)
	if have != (backends.Stamp{}) {
		now, err := readState(db, key)
		if err != nil || now.stamp() == have {
			return nil, s.fail(ctx, op, err)
		}
	}
	snap := &backends.Snapshot{Cursors: map[backends.Stream]backends.Cursor{}}
	err := db.Transaction(func(tx *gorm.DB) error {
		now, err := readState(tx, key)
		if err != nil {
			return err
		}
		snap.Stamp = now.stamp()
		if now.SessionID == "" || now.DeletedAt > 0 {
			return nil
		}
		return fill(tx, key, snap)
	}, s.dialect.read)
	if err != nil {
		return nil, s.fail(ctx, op, err)
	}
	return snap, nil
}

// fill reads the cursors and the active notes of a session.
func fill(tx *gorm.DB, key backends.SessionKey, snap *backends.Snapshot) error {
	var cursors []streamRow
	if err := tx.Where(byOwner, args(key)...).Find(&cursors).Error; err != nil {
		return err
	}
	streams := make(map[int64]backends.Stream, len(cursors))
	for _, row := range cursors {
		streams[row.Stream] = row.stream()
		if cursor := row.cursor(); !cursor.IsZero() {
			snap.Cursors[row.stream()] = cursor
		}
	}
	var notes []noteRow
	if err := tx.Where(byOwner+" AND active", args(key)...).Order("seq").Find(&notes).Error; err != nil {
		return err
	}
	for _, row := range notes {
		note := row.note(streams[row.Stream])
		if row.Generation == 0 {
			snap.Observations = append(snap.Observations, backends.Observation{Note: note})
		} else {
			snap.Reflections = append(snap.Reflections, backends.Reflection{
				Note: note, Generation: row.Generation, Sources: row.Sources,
			})
		}
	}
	return nil
}
