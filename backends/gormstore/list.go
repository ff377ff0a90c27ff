package gormstore

import (
	"context"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
)

// storedNote and storedMessage are rows beside the stream they belong to.
type (
	storedNote struct {
		Row    noteRow `gorm:"embedded"`
		Branch string
		Scope  string
	}
	storedMessage struct {
		Row    messageRow `gorm:"embedded"`
		Branch string
		Scope  string
	}
)

const withStream = "JOIN adkmemory_streams USING (app, user_id, session_id, stream)"

// notes starts a query for the notes of one session.
func (s *Store) notes(ctx context.Context, key backends.SessionKey) *gorm.DB {
	return s.reader.WithContext(ctx).Table("adkmemory_notes").Select("adkmemory_notes.*, branch, scope").Joins(withStream).Where(byOwner, args(key)...)
}

// recent returns the n newest notes that match, oldest first.
func (s *Store) recent(ctx context.Context, op string, key backends.SessionKey, match string, n int) ([]storedNote, error) {
	if err := s.begin(ctx, op, key.Validate()); err != nil {
		return nil, err
	}
	if n <= 0 {
		n = -1 // GORM's word for no limit
	}
	var rows []storedNote
	err := s.notes(ctx, key).Where("active AND " + match).Order("seq DESC").Limit(n).Find(&rows).Error
	slices.Reverse(rows)
	return rows, s.fail(ctx, op, err)
}

// ListRecentObservations implements [backends.Lister].
func (s *Store) ListRecentObservations(ctx context.Context, key backends.SessionKey, n int) ([]backends.Observation, error) {
	rows, err := s.recent(ctx, "adkmemory: list observations", key, "generation = 0", n)
	list := make([]backends.Observation, 0, len(rows))
	for _, row := range rows {
		list = append(list, backends.Observation{Note: row.stored().Note})
	}
	return list, err
}

// ListRecentReflections implements [backends.Lister].
func (s *Store) ListRecentReflections(ctx context.Context, key backends.SessionKey, n int) ([]backends.Reflection, error) {
	rows, err := s.recent(ctx, "adkmemory: list reflections", key, "generation > 0", n)
	list := make([]backends.Reflection, 0, len(rows))
	for _, row := range rows {
		list = append(list, backends.Reflection{Note: row.stored().Note, Generation: row.Row.Generation, Sources: row.Row.Sources})
	}
	return list, err
}

func (r storedNote) stored() backends.StoredNote {
	return backends.StoredNote{
		Note:       r.Row.note(backends.Stream{Branch: r.Branch, Scope: r.Scope}),
		Generation: r.Row.Generation, Sources: r.Row.Sources, Active: r.Row.Active, ParentID: r.Row.ParentID,
	}
}

// ListNotes implements [backends.Archive].
func (s *Store) ListNotes(ctx context.Context, key backends.SessionKey, q backends.NoteQuery) ([]backends.StoredNote, error) {
	const op = "adkmemory: list notes"
	if err := s.begin(ctx, op, key.Validate(), q.Validate()); err != nil {
		return nil, err
	}
	limit, _ := backends.PageLimit(q.Limit)
	query := s.notes(ctx, key).Where("seq > ?", q.AfterSeq).Order("seq").Limit(limit)
	if q.IDs != nil {
		query = query.Where("id IN ?", q.IDs)
	}
	var rows []storedNote
	if err := query.Find(&rows).Error; err != nil {
		return nil, s.fail(ctx, op, err)
	}
	list := make([]backends.StoredNote, 0, len(rows))
	for _, row := range rows {
		list = append(list, row.stored())
	}
	return list, nil
}

// ListMessages implements [backends.Archive].
func (s *Store) ListMessages(
	ctx context.Context, key backends.SessionKey, q backends.MessageQuery,
) ([]backends.StoredMessage, error) {
	const op = "adkmemory: list messages"
	if err := s.begin(ctx, op, key.Validate(), q.Validate()); err != nil {
		return nil, err
	}
	limit, _ := backends.PageLimit(q.Limit)
	db := s.reader.WithContext(ctx)
	query := db.Table("adkmemory_messages").Select("adkmemory_messages.*, branch, scope").Joins(withStream).Where(byOwner, args(key)...).
		Where("seq > ?", q.AfterSeq).Order("seq").Limit(limit)
	if q.ObservationID != "" {
		query = query.Where("note_id = ?", q.ObservationID)
	}
	var rows []storedMessage
	if err := query.Find(&rows).Error; err != nil {
		return nil, s.fail(ctx, op, err)
	}
	list := make([]backends.StoredMessage, 0, len(rows))
	for _, row := range rows {
		list = append(list, row.Row.message(backends.Stream{Branch: row.Branch, Scope: row.Scope}))
	}
	return list, nil
}

// ListSessions implements [backends.Lister].
func (s *Store) ListSessions(ctx context.Context, q backends.SessionQuery) ([]backends.SessionInfo, error) {
	const op = "adkmemory: list sessions"
	if err := s.begin(ctx, op, q.Validate()); err != nil {
		return nil, err
	}
	limit, _ := backends.PageLimit(q.Limit)
	const (
		same   = " c WHERE c.app = s.app AND c.user_id = s.user_id AND c.session_id = s.session_id"
		ofPage = " c WHERE c.app = page.app AND c.user_id = page.user_id AND c.session_id = page.session_id"
	)
	page := s.reader.WithContext(ctx).Table("adkmemory_sessions s").
		Where("app = ? AND deleted_at = 0", q.App).
		// Not EXISTS … OR EXISTS …: for that Postgres may read both tables whole, and put them in a hash.
		Where("coalesce((SELECT 1 FROM adkmemory_notes" + same + " LIMIT 1), " +
			"(SELECT 1 FROM adkmemory_messages" + same + " LIMIT 1)) = 1").
		Order("updated_at DESC, user_id, session_id").Offset(q.Offset).Limit(limit)
	if q.User != "" {
		page = page.Where("user_id = ?", q.User)
	}
	if q.Contains != "" {
		part := lowerASCII(q.Contains)
		page = page.Where("("+s.dialect.find+"(lower(user_id), ?) > 0 OR "+s.dialect.find+"(lower(session_id), ?) > 0)", part, part)
	}
	var rows []struct {
		Owner                                           owner `gorm:"embedded"`
		UpdatedAt                                       int64
		ObservationCount, ReflectionCount, MessageCount int
	}
	// The counts are outside, so that they are made for the page alone.
	err := s.reader.WithContext(ctx).Table("(?) page", page).Select(`app, user_id, session_id, updated_at,
		(SELECT count(*) FROM adkmemory_notes` + ofPage + ` AND c.active AND c.generation = 0) AS observation_count,
		(SELECT count(*) FROM adkmemory_notes` + ofPage + ` AND c.active AND c.generation > 0) AS reflection_count,
		(SELECT count(*) FROM adkmemory_messages` + ofPage + `) AS message_count`).
		Order("updated_at DESC, user_id, session_id").Scan(&rows).Error
	if err != nil {
		return nil, s.fail(ctx, op, err)
	}
	list := make([]backends.SessionInfo, 0, len(rows))
	for _, row := range rows {
		list = append(list, backends.SessionInfo{
			Key: row.Owner.key(), UpdatedAt: fromMicros(row.UpdatedAt),
			Observations: row.ObservationCount, Reflections: row.ReflectionCount, Messages: row.MessageCount,
		})
	}
	return list, nil
}

// lowerASCII does what both databases' lower does to the identifier columns.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
