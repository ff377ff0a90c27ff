package adksession

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"google.golang.org/adk/v2/platform"
	"google.golang.org/adk/v2/session"
	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
)

// AppendEvent implements session.Service: it stores the event and its state delta in one transaction, then adds both to
// the session object, which must come from this package. Partial events are ignored, temporary state is not stored, and
// the event's time is cut to the microsecond. An event without an id is given one.
//
// [ErrStale] when somebody else has appended since the object was read, [ErrNotFound] when the session is gone,
// [ErrExists] when the session has an event of that id already, [backends.ErrTooLarge] for an event of more than
// [backends.MaxMessageBytes]. Nothing changes then, in the object neither. A compaction since the object was read does
// not matter.
func (s *Service) AppendEvent(ctx context.Context, cur session.Session, event *session.Event) error {
	const op = "append event"
	if cur == nil || event == nil {
		return wrap(op, fmt.Errorf("%w: session or event is nil", backends.ErrInvalid))
	}
	sess, ok := cur.(*localSession)
	if !ok {
		return wrap(op, fmt.Errorf("%w: session of type %T does not come from this service", backends.ErrInvalid, cur))
	}
	if event.Partial {
		return nil
	}
	event.Timestamp = event.Timestamp.Truncate(time.Microsecond)
	if event.ID == "" {
		event.ID = platform.NewUUID(ctx)
	}
	stored := withoutTemp(event)
	data, err := json.Marshal(stored)
	if err != nil {
		return wrap(op, fmt.Errorf("%w: %w", backends.ErrInvalid, err))
	}
	if len(data) > backends.MaxMessageBytes {
		return wrap(op, fmt.Errorf("%w: the event is %d bytes", backends.ErrTooLarge, len(data)))
	}
	deltas, err := splitState(sess.key, event.Actions.StateDelta)
	if err != nil {
		return wrap(op, err)
	}
	updated := event.Timestamp
	if updated.IsZero() {
		updated = platform.Now(ctx).Truncate(time.Microsecond)
	}

	sess.appending.Lock()
	defer sess.appending.Unlock()
	at := sess.position()
	err = s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		// A write first: it takes the lock that all writers of the session queue for, and tells a stale object.
		moved := tx.Exec(`UPDATE adkmemory_adk_sessions SET last_seq = last_seq + 1, updated_at = ?
			WHERE `+byOwner+` AND epoch = ? AND last_seq = ?`,
			append([]any{updated.UnixMicro()}, args(sess.key, sess.epoch, at)...)...)
		if moved.Error != nil {
			return moved.Error
		}
		if moved.RowsAffected == 0 {
			if _, err := readRow(tx, sess.key); err != nil {
				return err
			}
			return ErrStale
		}
		if err := insertEvent(tx, sess.key, at+1, stored, data); err != nil {
			return err
		}
		return writeState(tx, deltas)
	}, s.writeTx)
	if err != nil {
		return wrap(op, err)
	}
	sess.appended(stored, event.Actions.StateDelta, at+1, updated)
	s.remember(sess, at, data)
	return nil
}

func insertEvent(tx *gorm.DB, key backends.SessionKey, seq int64, event *session.Event, data []byte) error {
	added := tx.Exec(`INSERT INTO adkmemory_adk_events (app, user_id, session_id, seq, id, sent_at, event)
		VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`, args(key, seq, event.ID, event.Timestamp.UnixMicro(), data)...)
	if added.Error == nil && added.RowsAffected == 0 {
		return ErrExists
	}
	return added.Error
}

// remember adds the event to the cache if that is complete up to it. The cache holds what a reader would decode rather
// than the caller's event, which the caller may go on to change. In case of doubt the next Get reads it.
func (s *Service) remember(sess *localSession, at int64, data []byte) {
	base, ok := s.cache.appendable(sess.key, sess.epoch, at)
	if !ok {
		return
	}
	event, err := decodeEvent(data)
	if err != nil {
		return
	}
	now := base.stamp
	now.lastSeq++
	s.cache.extend(sess.key, base, []item{{seq: now.lastSeq, event: event}}, eventSize(data), now)
}

// withoutTemp returns the event without temporary state; a copy if there is any.
func withoutTemp(event *session.Event) *session.Event {
	isTemp := func(name string, _ any) bool { return strings.HasPrefix(name, session.KeyPrefixTemp) }
	kept := maps.Clone(event.Actions.StateDelta)
	maps.DeleteFunc(kept, isTemp)
	if len(kept) == len(event.Actions.StateDelta) {
		return event
	}
	trimmed := *event
	trimmed.Actions.StateDelta = kept
	return &trimmed
}
