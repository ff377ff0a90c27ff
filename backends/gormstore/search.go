package gormstore

import (
	"context"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/fulltext"
)

var _ backends.Searcher = (*Store)(nil)

// Search implements [backends.Searcher].
func (s *Store) Search(ctx context.Context, q backends.SearchQuery) ([]backends.Found, error) {
	const op = "adkmemory: search"
	q, err := q.Normalize()
	if err := s.begin(ctx, op, err); err != nil {
		return nil, err
	}
	query := fulltext.QueryFor(q)
	if len(query.Terms) == 0 {
		return nil, nil
	}
	var found []backends.Found
	err = s.reader.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		for _, kind := range q.Kinds {
			if q.Session != "" && !kind.OfSession() {
				continue
			}
			results, err := fulltext.Search(ctx, area{tx: tx, app: q.App, user: q.User, kind: kind}, query)
			if err != nil || len(results) == 0 {
				if err != nil {
					return err
				}
				continue
			}
			numbers := make([][]any, len(results))
			for i, r := range results {
				numbers[i] = []any{r.Doc}
			}
			docs, err := resolve(tx, q.App, q.User, kind, "doc = ?", numbers)
			if err != nil {
				return err
			}
			for _, r := range results {
				if f, ok := docs[r.Doc]; ok && q.Matches(f) {
					f.Score = r.Score
					found = append(found, f)
				}
			}
		}
		return nil
	}, s.dialect.read)
	if err != nil {
		return nil, s.fail(ctx, op, err)
	}
	return fulltext.Best(found, q.Limit), nil
}

// Lookup implements [backends.Searcher].
func (s *Store) Lookup(ctx context.Context, app, user string, refs []backends.Ref) ([]backends.Found, error) {
	const op = "adkmemory: look up"
	if err := s.begin(ctx, op, backends.ValidateRefs(app, user, refs)); err != nil {
		return nil, err
	}
	byKind := map[backends.Kind][][]any{}
	for _, r := range refs {
		byKind[r.Kind] = append(byKind[r.Kind], []any{r.Session, r.ID})
	}
	known := map[backends.Ref]backends.Found{}
	err := s.reader.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		for kind, pairs := range byKind {
			docs, err := resolve(tx, app, user, kind, "session_id = ? AND ref = ?", pairs)
			if err != nil {
				return err
			}
			for _, f := range docs {
				known[f.Ref] = f
			}
		}
		return nil
	}, s.dialect.read)
	if err != nil {
		return nil, s.fail(ctx, op, err)
	}
	var found []backends.Found
	for _, r := range refs {
		if f, ok := known[r]; ok {
			found = append(found, f)
		}
	}
	return found, nil
}

// resolve reads the documents of a kind that a condition on adkmemory_search_docs selects for any of the tuples of values,
// by their numbers.
func resolve(tx *gorm.DB, app, user string, kind backends.Kind, match string, values [][]any) (map[uint32]backends.Found, error) {
	var docs []docRow
	err := union(tx, &docs, "SELECT doc, session_id, ref, seq FROM adkmemory_search_docs WHERE "+byArea+" AND "+match,
		[]any{app, user, kind}, values)
	if err != nil || len(docs) == 0 {
		return nil, err
	}
	byRef := make(map[backends.Ref]uint32, len(docs))
	keys := make([][]any, len(docs))
	var sessions []string
	for i, d := range docs {
		byRef[backends.Ref{Kind: kind, Session: d.SessionID, ID: d.Ref}] = d.Doc
		keys[i] = []any{d.SessionID, d.Seq}
		if !kind.OfSession() {
			keys[i] = []any{d.Ref}
		}
		sessions = append(sessions, d.SessionID)
	}
	out := make(map[uint32]backends.Found, len(docs))
	put := func(f backends.Found) { out[byRef[f.Ref]] = f }
	const bySeq = "app = ? AND user_id = ? AND session_id = ? AND seq = ?"
	switch {
	case kind == backends.KindMessage:
		var rows []messageRow
		if err := union(tx, &rows, "SELECT * FROM adkmemory_messages WHERE "+bySeq, []any{app, user}, keys); err != nil {
			return nil, err
		}
		streams, err := streamsOf(tx, app, user, sessions)
		for _, r := range rows {
			m := r.message(streams[streamKey{r.Owner.SessionID, r.Stream}])
			put(backends.Found{Ref: backends.Ref{Kind: kind, Session: r.Owner.SessionID, ID: m.ID}, Message: &m})
		}
		return out, err
	case kind.OfSession():
		var rows []noteRow
		if err := union(tx, &rows, "SELECT * FROM adkmemory_notes WHERE "+bySeq, []any{app, user}, keys); err != nil {
			return nil, err
		}
		streams, err := streamsOf(tx, app, user, sessions)
		for _, r := range rows {
			stream := streams[streamKey{r.Owner.SessionID, r.Stream}]
			n := storedNote{Row: r, Branch: stream.Branch, Scope: stream.Scope}.stored()
			put(backends.Found{Ref: backends.Ref{Kind: kind, Session: r.Owner.SessionID, ID: n.ID}, Note: &n})
		}
		return out, err
	}
	var rows []entryRow
	err = union(tx, &rows, "SELECT * FROM adkmemory_entries WHERE "+byEntry+" AND newest", []any{app, user, kind}, keys)
	for _, r := range rows {
		e := r.entry()
		put(backends.Found{Ref: backends.Ref{Kind: kind, ID: e.Key}, Entry: &e})
	}
	return out, err
}

type docRow struct {
	Doc       uint32
	SessionID string
	Ref       string
	Seq       int64
}

type streamKey struct {
	session string
	stream  int64
}

// streamsOf reads the streams of sessions.
func streamsOf(tx *gorm.DB, app, user string, sessions []string) (map[streamKey]backends.Stream, error) {
	slices.Sort(sessions)
	var values [][]any
	for _, id := range slices.Compact(sessions) {
		values = append(values, []any{id})
	}
	var rows []streamRow
	err := union(tx, &rows, "SELECT * FROM adkmemory_streams WHERE "+byOwner, []any{app, user}, values)
	out := make(map[streamKey]backends.Stream, len(rows))
	for _, r := range rows {
		out[streamKey{r.Owner.SessionID, r.Stream}] = r.stream()
	}
	return out, err
}

// maxArms bounds the selects of one union; SQLite allows 500.
const maxArms = 100

// union runs a select once for each tuple of values, in few statements, and appends what they return to dest. Each of
// them is a look-up by a whole key: a list of keys in one condition is read from end to end by a Postgres that has no
// statistics of the table yet.
func union[T any](tx *gorm.DB, dest *[]T, query string, with []any, values [][]any) error {
	for chunk := range slices.Chunk(values, maxArms) {
		var args []any
		for _, v := range chunk {
			args = append(append(args, with...), v...)
		}
		var rows []T
		sql := query + strings.Repeat(" UNION ALL "+query, len(chunk)-1)
		if err := tx.Raw(sql, args...).Scan(&rows).Error; err != nil {
			return err
		}
		*dest = append(*dest, rows...)
	}
	return nil
}
