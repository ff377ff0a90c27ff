package gormstore

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/fulltext"
)

// writeBlocks bounds the blocks of a statement, because databases bound its parameters.
const writeBlocks = 1000

// area implements [fulltext.Blocks] for one kind of one user, in a transaction.
type area struct {
	tx        *gorm.DB
	app, user string
	kind      backends.Kind
	write     bool
}

const byArea = "app = ? AND user_id = ? AND kind = ?"

func (a area) args(more ...any) []any { return append([]any{a.app, a.user, a.kind}, more...) }

// Stats implements [fulltext.Blocks].
func (a area) Stats(context.Context) (fulltext.Stats, error) {
	var s fulltext.Stats
	if !a.write {
		err := a.tx.Raw(`SELECT next, docs, length, tail FROM adkmemory_search_areas WHERE `+byArea, a.args()...).Scan(&s).Error
		return s, err
	}
	err := a.tx.Raw(`INSERT INTO adkmemory_search_areas (app, user_id, kind, next, docs, length, tail)
		VALUES (?, ?, ?, 0, 0, 0, '') ON CONFLICT (app, user_id, kind) DO UPDATE SET docs = adkmemory_search_areas.docs
		RETURNING next, docs, length, tail`, a.args()...).Scan(&s).Error
	return s, err
}

// SetStats implements [fulltext.Blocks].
func (a area) SetStats(_ context.Context, s fulltext.Stats) error {
	if s.Docs <= 0 {
		return a.tx.Exec(`DELETE FROM adkmemory_search_areas WHERE `+byArea, a.args()...).Error
	}
	return a.tx.Exec(`UPDATE adkmemory_search_areas SET next = ?, docs = ?, length = ?, tail = ? WHERE `+byArea,
		append([]any{s.Next, s.Docs, s.Length, s.Tail}, a.args()...)...).Error
}

// Read implements [fulltext.Blocks].
func (a area) Read(_ context.Context, terms []string, open bool) ([]fulltext.Block, error) {
	var out []fulltext.Block
	match := byArea + " AND term = ?"
	if open {
		match += " AND block = ?"
	}
	for chunk := range slices.Chunk(terms, maxArms) { // see union
		var with []any
		for _, t := range chunk {
			if with = append(with, a.args(t)...); open {
				with = append(with, fulltext.OpenBlock)
			}
		}
		err := a.each(match+strings.Repeat(" UNION ALL "+selectBlocks+match, len(chunk)-1), with, func(b fulltext.Block) error {
			out = append(out, b)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

const selectBlocks = "SELECT term, block, data FROM adkmemory_search_blocks WHERE "

// ReadAll implements [fulltext.Blocks].
func (a area) ReadAll(_ context.Context, f func(fulltext.Block) error) error {
	return a.each(byArea, a.args(), f)
}

func (a area) each(match string, with []any, f func(fulltext.Block) error) error {
	rows, err := a.tx.Raw(selectBlocks+match, with...).Rows()
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var b fulltext.Block
		if err := rows.Scan(&b.Term, &b.Key, &b.Data); err != nil {
			return err
		}
		if err := f(b); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Write implements [fulltext.Blocks].
func (a area) Write(_ context.Context, blocks []fulltext.Block) error {
	for chunk := range slices.Chunk(blocks, writeBlocks) {
		var put []any
		var drop []string // of open blocks: full ones rarely go
		for _, b := range chunk {
			switch {
			case len(b.Data) > 0:
				put = append(put, a.args(b.Term, b.Key, b.Data)...)
			case b.Key == fulltext.OpenBlock:
				drop = append(drop, b.Term)
			default:
				if err := a.drop([]string{b.Term}, b.Key); err != nil {
					return err
				}
			}
		}
		if n := len(put) / 6; n > 0 {
			err := a.tx.Exec(`INSERT INTO adkmemory_search_blocks (app, user_id, kind, term, block, data) VALUES `+
				tuples(6, n)+` ON CONFLICT (app, user_id, kind, term, block) DO UPDATE SET data = excluded.data`, put...).Error
			if err != nil {
				return err
			}
		}
		if len(drop) > 0 {
			if err := a.drop(drop, fulltext.OpenBlock); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a area) drop(terms []string, key uint32) error {
	return a.tx.Exec(`DELETE FROM adkmemory_search_blocks WHERE `+byArea+` AND term IN ? AND block = ?`, a.args(terms, key)...).Error
}

// lockAreas holds back writers of the index until the transaction ends, in the order in which they lock several areas.
// An area without a row has no documents.
func (s *Store) lockAreas(tx *gorm.DB, match string, with ...any) error {
	if s.dialect.lockRows == "" { // SQLite: any write will do
		return tx.Exec("UPDATE adkmemory_search_areas SET docs = docs WHERE "+match, with...).Error
	}
	var locked []int64
	return tx.Raw("SELECT docs FROM adkmemory_search_areas WHERE "+match+" ORDER BY app, user_id, kind"+s.dialect.lockRows, with...).
		Scan(&locked).Error
}

// tuples is a list of n tuples of width placeholders.
func tuples(width, n int) string {
	tuple := "(" + strings.TrimSuffix(strings.Repeat("?, ", width), ", ") + "), "
	return strings.TrimSuffix(strings.Repeat(tuple, n), ", ")
}

// document is a row of adkmemory_search_docs without its number.
type document struct {
	ref backends.Ref
	seq int64
	fulltext.Document
}

// index adds documents of one kind to a user's index.
func index(tx *gorm.DB, app, user string, docs []document) error {
	if len(docs) == 0 {
		return nil
	}
	texts := make([]fulltext.Document, len(docs))
	for i, d := range docs {
		texts[i] = d.Document
	}
	a := area{tx: tx, app: app, user: user, kind: docs[0].ref.Kind, write: true}
	first, err := fulltext.Add(tx.Statement.Context, a, texts)
	if err != nil {
		return err
	}
	for start := 0; start < len(docs); start += maxInsertRows {
		chunk := docs[start:min(start+maxInsertRows, len(docs))]
		var values []any
		for i, d := range chunk {
			values = append(values, a.args(int64(first)+int64(start+i), d.ref.Session, d.ref.ID, d.seq)...)
		}
		err := tx.Exec(`INSERT INTO adkmemory_search_docs (app, user_id, kind, doc, session_id, ref, seq) VALUES `+
			tuples(7, len(chunk)), values...).Error
		if err != nil {
			return err
		}
	}
	return nil
}

// indexMessages indexes messages of a stream that were stored under numbers that end at lastSeq.
func indexMessages(tx *gorm.DB, key backends.SessionKey, stream backends.Stream, lastSeq int64, messages []backends.Message) error {
	docs := make([]document, len(messages))
	for i, m := range messages {
		docs[i] = document{
			ref:      backends.Ref{Kind: backends.KindMessage, Session: key.Session, ID: m.ID},
			seq:      lastSeq - int64(len(messages)-1-i),
			Document: fulltext.MessageDocument(key.Session, stream, m),
		}
	}
	return index(tx, key.App, key.User, docs)
}

func indexNote(tx *gorm.DB, key backends.SessionKey, kind backends.Kind, n backends.Note) error {
	return index(tx, key.App, key.User, []document{{
		ref: backends.Ref{Kind: kind, Session: key.Session, ID: n.ID}, seq: n.Seq, Document: fulltext.NoteDocument(key.Session, n),
	}})
}

// forget removes the documents of a user that a condition on adkmemory_search_docs selects from the index, with their
// vectors and the triples drawn from them. as are the documents as they were indexed, nil when that is not known.
func forget(tx *gorm.DB, app, user, match string, with []any, as []fulltext.Document) error {
	var rows []struct {
		Kind      backends.Kind
		Doc       uint32
		SessionID string
		Ref       string
	}
	err := tx.Raw(`SELECT kind, doc, session_id, ref FROM adkmemory_search_docs WHERE app = ? AND user_id = ? AND `+match,
		append([]any{app, user}, with...)...).Scan(&rows).Error
	if err != nil || len(rows) == 0 {
		return err
	}
	docs := map[backends.Kind][]uint32{}
	for _, r := range rows {
		docs[r.Kind] = append(docs[r.Kind], r.Doc)
	}
	for _, kind := range backends.Kinds() { // one order for all writers
		a := area{tx: tx, app: app, user: user, kind: kind, write: true}
		if err := fulltext.Remove(tx.Statement.Context, a, docs[kind], as); err != nil {
			return err
		}
	}
	for chunk := range slices.Chunk(rows, maxInsertRows) {
		refs := []any{app, user}
		for _, r := range chunk {
			refs = append(refs, r.SessionID, string(r.Kind), r.Ref)
		}
		for _, table := range []string{"adkmemory_vectors", "adkmemory_triples", "adkmemory_search_docs"} {
			err := tx.Exec("DELETE FROM "+table+" WHERE app = ? AND user_id = ? AND (session_id, kind, ref) IN (VALUES "+
				tuples(3, len(chunk))+")", refs...).Error
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// forgetNotes removes notes of a session from the index, selected by a condition on adkmemory_notes.
func forgetNotes(tx *gorm.DB, key backends.SessionKey, match string, with ...any) error {
	return forget(tx, key.App, key.User, `session_id = ? AND kind IN ('observation', 'reflection') AND ref IN
		(SELECT id FROM adkmemory_notes WHERE `+byOwner+` AND `+match+`)`,
		append([]any{key.Session}, args(key, with...)...), nil)
}

// forgetSessions removes all documents of sessions.
func forgetSessions(tx *gorm.DB, sessions []owner) error {
	type tenant struct{ app, user string }
	ids := map[tenant][]string{}
	var tenants []tenant
	for _, o := range sessions {
		t := tenant{o.App, o.UserID}
		if ids[t] == nil {
			tenants = append(tenants, t)
		}
		ids[t] = append(ids[t], o.SessionID)
	}
	slices.SortFunc(tenants, func(a, b tenant) int { return cmp.Or(cmp.Compare(a.app, b.app), cmp.Compare(a.user, b.user)) })
	for _, t := range tenants {
		if err := forget(tx, t.app, t.user, "session_id IN ?", []any{ids[t]}, nil); err != nil {
			return err
		}
	}
	return nil
}
