package adksession

import (
	"context"
	"encoding/json"
	"time"

	"google.golang.org/adk/v2/session"
	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
)

// stamp identifies one state of a session's events.
type stamp struct {
	epoch      string
	generation int64
	lastSeq    int64
}

// follows reports whether s is a later state than base, of events that only were appended to.
func (s stamp) follows(base stamp) bool {
	return s.epoch == base.epoch && s.generation == base.generation && s.lastSeq >= base.lastSeq
}

// sessionRow is a session without its events.
type sessionRow struct {
	stamp
	updated time.Time
	state   map[string]any // merged, with prefixes
}

type listRow struct {
	UserID, SessionID, Epoch       string
	Generation, LastSeq, UpdatedAt int64
}

// item is an event at its place.
type item struct {
	seq   int64
	event *session.Event
}

// filter selects events of a session; the zero value selects all.
type filter struct {
	recent int
	after  time.Time
}

func (f filter) isZero() bool { return f.recent <= 0 && f.after.IsZero() }

// apply returns the selected items, in order. It does not change its argument.
func (f filter) apply(items []item) []item {
	if f.after.IsZero() {
		if f.recent > 0 && f.recent < len(items) {
			return items[len(items)-f.recent:]
		}
		return items
	}
	var selected []item
	for _, it := range items { // times need not be in order
		if !it.event.Timestamp.Before(f.after) {
			selected = append(selected, it)
		}
	}
	return filter{recent: f.recent}.apply(selected)
}

// load returns the session and its events in one consistent view: with one query when the cache holds that state, and
// otherwise by reading the events that it lacks.
func (s *Service) load(ctx context.Context, key backends.SessionKey, f filter) (sessionRow, []item, error) {
	db := s.reader.WithContext(ctx)
	row, err := readRow(db, key)
	if err != nil {
		return sessionRow{}, nil, err
	}
	if v, ok := s.cache.get(key, row.stamp); ok && v.lastSeq == row.lastSeq {
		return row, f.apply(v.items), nil
	}
	var items []item
	err = db.Transaction(func(tx *gorm.DB) error {
		if row, err = readRow(tx, key); err != nil {
			return err
		}
		base, ok := s.cache.get(key, row.stamp)
		if !ok && !f.isZero() { // a cold session is not read as a whole for the sake of a part
			items, _, err = readItems(tx, key, 0, f)
			return err
		}
		fresh, size, err := readItems(tx, key, base.afterSeq(), filter{})
		if err != nil {
			return err
		}
		items = s.cache.extend(key, base, fresh, size, row.stamp)
		items = f.apply(items)
		return nil
	}, s.readTx)
	return row, items, err
}

// readRow reads the session and its state with one query.
func readRow(tx *gorm.DB, key backends.SessionKey) (sessionRow, error) {
	rows, err := tx.Raw(`SELECT s.epoch, s.generation, s.last_seq, s.updated_at, t.user_id, t.session_id, t.name, t.value
		FROM adkmemory_adk_sessions s LEFT JOIN adkmemory_adk_state t
		ON t.app = s.app AND t.user_id IN ('', s.user_id) AND t.session_id IN ('', s.session_id)
		WHERE s.app = ? AND s.user_id = ? AND s.session_id = ?`, args(key)...).Rows()
	if err != nil {
		return sessionRow{}, err
	}
	defer func() { _ = rows.Close() }()
	row := sessionRow{state: make(map[string]any)}
	found := false
	for rows.Next() {
		var updated int64
		var user, id, name *string
		var value []byte
		if err := rows.Scan(&row.epoch, &row.generation, &row.lastSeq, &updated, &user, &id, &name, &value); err != nil {
			return sessionRow{}, err
		}
		found, row.updated = true, time.UnixMicro(updated)
		if name == nil {
			continue
		}
		if row.state[scopePrefix(*user, *id)+*name], err = decodeValue(value); err != nil {
			return sessionRow{}, err
		}
	}
	if err := rows.Err(); err != nil {
		return sessionRow{}, err
	}
	if !found {
		return sessionRow{}, ErrNotFound
	}
	return row, nil
}

// readItems reads the events after a sequence number, and returns an estimate of their size in memory with them.
func readItems(tx *gorm.DB, key backends.SessionKey, after int64, f filter) (items []item, size int, err error) {
	query := tx.Table("adkmemory_adk_events").Select("seq, event").Where(byOwner, args(key)...)
	if after != beforeAll {
		query = query.Where("seq > ?", after)
	}
	if !f.after.IsZero() {
		query = query.Where("sent_at >= ?", microsUp(f.after))
	}
	if f.recent > 0 {
		query = query.Order("seq DESC").Limit(f.recent)
	} else {
		query = query.Order("seq")
	}
	rows, err := query.Rows()
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var it item
		var data []byte
		if err := rows.Scan(&it.seq, &data); err != nil {
			return nil, 0, err
		}
		if it.event, err = decodeEvent(data); err != nil {
			return nil, 0, err
		}
		items = append(items, it)
		size += eventSize(data)
	}
	if f.recent > 0 {
		for i, j := 0, len(items)-1; i < j; i, j = i+1, j-1 {
			items[i], items[j] = items[j], items[i]
		}
	}
	return items, size, rows.Err()
}

// microsUp rounds up, so that a time between two microseconds keeps out what is stored with the earlier one.
func microsUp(t time.Time) int64 {
	micros := t.UnixMicro()
	if time.UnixMicro(micros).Before(t) {
		micros++
	}
	return micros
}

func decodeEvent(data []byte) (*session.Event, error) {
	event := new(session.Event)
	if err := json.Unmarshal(data, event); err != nil {
		return nil, err
	}
	return event, nil
}

// eventSize estimates what an event holds in memory: the struct and its maps, and the strings of its encoding about
// twice.
func eventSize(data []byte) int { return 1024 + 2*len(data) }
