package gormstore

import (
	"context"

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
			numbers := make([]uint32, len(results))
			for i, r := range results {
				numbers[i] = r.Doc
			}
			docs, err := resolve(tx, q.App, q.User, kind, "doc IN ?", numbers)
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
	byKind := map[backends.Kind][]any{}
	for _, r := range refs {
		byKind[r.Kind] = append(byKind[r.Kind], r.Session, r.ID)
	}
	known := map[backends.Ref]backends.Found{}
	err := s.reader.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		for kind, pairs := range byKind {
			docs, err := resolve(tx, app, user, kind, "(session_id, ref) IN (VALUES "+tuples(2, len(pairs)/2)+")", pairs...)
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

// resolve reads the documents of a kind that a condition on adkmemory_search_docs selects, by their numbers.
func resolve(tx *gorm.DB, app, user string, kind backends.Kind, match string, with ...any) (map[uint32]backends.Found, error) {
	docs := tx.Table("adkmemory_search_docs").Where(byArea+" AND "+match, append([]any{app, user, kind}, with...)...)
	const bySeq = " ON t.app = d.app AND t.user_id = d.user_id AND t.session_id = d.session_id AND t.seq = d.seq"
	const stream = " JOIN adkmemory_streams s ON s.app = t.app AND s.user_id = t.user_id AND s.session_id = t.session_id AND s.stream = t.stream"
	out := map[uint32]backends.Found{}
	switch {
	case kind == backends.KindMessage:
		var rows []struct {
			Doc    uint32
			Stored storedMessage `gorm:"embedded"`
		}
		err := tx.Table("(?) d", docs).Select("d.doc, t.*, s.branch, s.scope").
			Joins("JOIN adkmemory_messages t" + bySeq + stream).Scan(&rows).Error
		for _, r := range rows {
			m := r.Stored.Row.message(backends.Stream{Branch: r.Stored.Branch, Scope: r.Stored.Scope})
			out[r.Doc] = backends.Found{Ref: backends.Ref{Kind: kind, Session: m.Key.Session, ID: m.ID}, Message: &m}
		}
		return out, err
	case kind.OfSession():
		var rows []struct {
			Doc    uint32
			Stored storedNote `gorm:"embedded"`
		}
		err := tx.Table("(?) d", docs).Select("d.doc, t.*, s.branch, s.scope").
			Joins("JOIN adkmemory_notes t" + bySeq + stream).Scan(&rows).Error
		for _, r := range rows {
			n := r.Stored.stored()
			out[r.Doc] = backends.Found{Ref: backends.Ref{Kind: kind, Session: r.Stored.Row.Owner.SessionID, ID: n.ID}, Note: &n}
		}
		return out, err
	}
	var rows []struct {
		Doc uint32
		Row entryRow `gorm:"embedded"`
	}
	err := tx.Table("(?) d", docs).Select("d.doc, t.*").Joins(`JOIN adkmemory_entries t
		ON t.app = d.app AND t.user_id = d.user_id AND t.kind = d.kind AND t.entry_key = d.ref AND t.newest`).Scan(&rows).Error
	for _, r := range rows {
		e := r.Row.entry()
		out[r.Doc] = backends.Found{Ref: backends.Ref{Kind: kind, ID: e.Key}, Entry: &e}
	}
	return out, err
}
