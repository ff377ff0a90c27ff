package gormstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"

	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
)

var (
	_ backends.VectorStore = (*Store)(nil)
	_ backends.GraphStore  = (*Store)(nil)
)

// exists reports whether a document is there. With its area locked it stays there.
func exists(tx *gorm.DB, app, user string, ref backends.Ref) (bool, error) {
	var n int64
	err := tx.Raw(`SELECT count(*) FROM adkmemory_search_docs WHERE app = ? AND user_id = ? AND session_id = ? AND kind = ? AND ref = ?`,
		app, user, ref.Session, ref.Kind, ref.ID).Scan(&n).Error
	return n > 0, err
}

// PutVectors implements [backends.VectorStore].
func (s *Store) PutVectors(ctx context.Context, app, user string, vectors []backends.Vector) error {
	const op = "adkmemory: put vectors"
	if err := s.begin(ctx, op, backends.ValidateVectors(app, user, vectors)); err != nil {
		return err
	}
	return s.write(ctx, op, func(tx *gorm.DB) error {
		if err := s.lockAreas(tx, "app = ? AND user_id = ?", app, user); err != nil {
			return err
		}
		for _, v := range vectors {
			if ok, err := exists(tx, app, user, v.Ref); err != nil || !ok {
				if err != nil {
					return err
				}
				continue
			}
			err := tx.Exec(`INSERT INTO adkmemory_vectors (app, user_id, session_id, kind, ref, model, dims, data)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (app, user_id, session_id, kind, ref, model)
				DO UPDATE SET dims = excluded.dims, data = excluded.data`,
				app, user, v.Session, v.Kind, v.ID, v.Model, len(v.Values), packFloats(v.Values)).Error
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// NearestVectors implements [backends.VectorStore].
func (s *Store) NearestVectors(ctx context.Context, q backends.VectorQuery) ([]backends.ScoredRef, error) {
	const op = "adkmemory: nearest vectors"
	q, err := q.Normalize()
	if err := s.begin(ctx, op, err); err != nil {
		return nil, err
	}
	db := s.reader.WithContext(ctx).Table("adkmemory_vectors").Select("session_id, kind, ref, data").
		Where("app = ? AND user_id = ? AND model = ? AND dims = ?", q.App, q.User, q.Model, len(q.Values))
	if q.Session != "" {
		db = db.Where("session_id = ?", q.Session)
	}
	if len(q.Kinds) > 0 {
		db = db.Where("kind IN ?", q.Kinds)
	}
	rows, err := db.Rows()
	if err != nil {
		return nil, s.fail(ctx, op, err)
	}
	defer func() { _ = rows.Close() }()
	var out []backends.ScoredRef
	values := make([]float32, len(q.Values))
	for rows.Next() {
		var ref backends.ScoredRef
		var data []byte
		if err := rows.Scan(&ref.Session, &ref.Kind, &ref.ID, &data); err != nil {
			return nil, s.fail(ctx, op, err)
		}
		unpackFloats(values, data)
		ref.Score = backends.Cosine(values, q.Values)
		out = append(out, ref)
	}
	if err := rows.Err(); err != nil {
		return nil, s.fail(ctx, op, err)
	}
	slices.SortFunc(out, func(a, b backends.ScoredRef) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), a.Compare(b.Ref))
	})
	return out[:min(q.Limit, len(out))], nil
}

func packFloats(values []float32) []byte {
	out := make([]byte, 0, 4*len(values))
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

func unpackFloats(values []float32, data []byte) {
	clear(values)
	for i := range values {
		if len(data) < 4*i+4 {
			return
		}
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
}

type tripleRow struct {
	SessionID string
	Kind      backends.Kind
	Ref       string
	Subject   string
	Predicate string
	Object    string
	DrawnAt   int64
}

const tripleColumns = "session_id, kind, ref, subject, predicate, object, drawn_at"

// PutTriples implements [backends.GraphStore].
func (s *Store) PutTriples(ctx context.Context, app, user string, triples []backends.Triple) error {
	const op = "adkmemory: put triples"
	triples, err := backends.CleanTriples(app, user, triples)
	if err := s.begin(ctx, op, err); err != nil {
		return err
	}
	return s.write(ctx, op, func(tx *gorm.DB) error {
		if err := s.lockAreas(tx, "app = ? AND user_id = ?", app, user); err != nil {
			return err
		}
		for _, t := range triples {
			if ok, err := exists(tx, app, user, t.Source); err != nil || !ok {
				if err != nil {
					return err
				}
				continue
			}
			subject, object := backends.Entity(t.Subject), backends.Entity(t.Object)
			digest := sha256.Sum256([]byte(subject + "\x00" + backends.Entity(t.Predicate) + "\x00" + object))
			err := tx.Exec(`INSERT INTO adkmemory_triples (app, user_id, `+tripleColumns+`, digest, subject_key, object_key)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`, app, user, t.Source.Session, t.Source.Kind, t.Source.ID,
				t.Subject, t.Predicate, t.Object, t.At.UnixMicro(), hex.EncodeToString(digest[:16]), subject, object).Error
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// ListTriples implements [backends.GraphStore].
func (s *Store) ListTriples(ctx context.Context, q backends.TripleQuery) ([]backends.Triple, error) {
	q, err := q.Normalize()
	if err := s.begin(ctx, "adkmemory: list triples", err); err != nil || len(q.About) == 0 {
		return nil, err
	}
	match, with := "(subject_key IN ? OR object_key IN ?)", []any{q.About, q.About}
	if q.Session != "" {
		match, with = match+" AND session_id = ?", append(with, q.Session)
	}
	return s.triples(ctx, "adkmemory: list triples", q.App, q.User, q.Limit, match, with...)
}

// TriplesOf implements [backends.GraphStore].
func (s *Store) TriplesOf(ctx context.Context, app, user string, sources []backends.Ref) ([]backends.Triple, error) {
	const op = "adkmemory: list triples of documents"
	if err := s.begin(ctx, op, backends.ValidateRefs(app, user, sources)); err != nil || len(sources) == 0 {
		return nil, err
	}
	var refs []any
	for _, r := range sources {
		refs = append(refs, r.Session, string(r.Kind), r.ID)
	}
	return s.triples(ctx, op, app, user, backends.MaxListItems,
		"(session_id, kind, ref) IN (VALUES "+tuples(3, len(sources))+")", refs...)
}

func (s *Store) triples(ctx context.Context, op, app, user string, limit int, match string, with ...any) ([]backends.Triple, error) {
	var rows []tripleRow
	err := s.reader.WithContext(ctx).Table("adkmemory_triples").Select(tripleColumns).
		Where("app = ? AND user_id = ? AND "+match, append([]any{app, user}, with...)...).
		Order("drawn_at DESC, session_id, kind, ref, digest").Limit(limit).Scan(&rows).Error
	if err != nil {
		return nil, s.fail(ctx, op, err)
	}
	var out []backends.Triple
	for _, r := range rows {
		out = append(out, backends.Triple{
			Subject: r.Subject, Predicate: r.Predicate, Object: r.Object, At: fromMicros(r.DrawnAt),
			Source: backends.Ref{Kind: r.Kind, Session: r.SessionID, ID: r.Ref},
		})
	}
	return out, nil
}
