package inmemory

import (
	"cmp"
	"context"
	"slices"

	"github.com/adkmemory/adkmemory/backends"
)

type vectorKey struct {
	backends.Ref
	model string
}

// PutVectors implements [backends.VectorStore].
func (s *Store) PutVectors(ctx context.Context, app, user string, vectors []backends.Vector) error {
	if err := s.begin(ctx, backends.ValidateVectors(app, user, vectors)); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, v := range vectors {
		if _, exists := s.resolve(app, user, v.Ref); exists {
			s.library(app, user).vectors[vectorKey{v.Ref, v.Model}] = slices.Clone(v.Values)
		}
	}
	return nil
}

// NearestVectors implements [backends.VectorStore].
func (s *Store) NearestVectors(ctx context.Context, q backends.VectorQuery) ([]backends.ScoredRef, error) {
	q, err := q.Normalize()
	if err := s.begin(ctx, err); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []backends.ScoredRef
	if l := s.libraries[tenant{q.App, q.User}]; l != nil {
		for k, values := range l.vectors {
			if k.model == q.Model && len(values) == len(q.Values) && q.Admits(k.Ref) {
				out = append(out, backends.ScoredRef{Ref: k.Ref, Score: backends.Cosine(values, q.Values)})
			}
		}
	}
	slices.SortFunc(out, func(a, b backends.ScoredRef) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), a.Compare(b.Ref))
	})
	return out[:min(q.Limit, len(out))], nil
}

// PutTriples implements [backends.GraphStore].
func (s *Store) PutTriples(ctx context.Context, app, user string, triples []backends.Triple) error {
	triples, err := backends.CleanTriples(app, user, triples)
	if err := s.begin(ctx, err); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, t := range triples {
		if _, exists := s.resolve(app, user, t.Source); !exists {
			continue
		}
		l := s.library(app, user)
		if !slices.ContainsFunc(l.triples, func(old backends.Triple) bool { return old.Same(t) }) {
			l.triples = append(l.triples, t)
		}
	}
	return nil
}

// ListTriples implements [backends.GraphStore].
func (s *Store) ListTriples(ctx context.Context, q backends.TripleQuery) ([]backends.Triple, error) {
	q, err := q.Normalize()
	if err := s.begin(ctx, err); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return s.triplesWhere(q.App, q.User, q.Limit, func(t backends.Triple) bool {
		about := slices.Contains(q.About, backends.Entity(t.Subject)) || slices.Contains(q.About, backends.Entity(t.Object))
		return about && (q.Session == "" || q.Session == t.Source.Session)
	}), nil
}

// TriplesOf implements [backends.GraphStore].
func (s *Store) TriplesOf(ctx context.Context, app, user string, sources []backends.Ref) ([]backends.Triple, error) {
	if err := s.begin(ctx, backends.ValidateRefs(app, user, sources)); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return s.triplesWhere(app, user, backends.MaxListItems, func(t backends.Triple) bool {
		return slices.Contains(sources, t.Source)
	}), nil
}

// triplesWhere returns the newest that match.
func (s *Store) triplesWhere(app, user string, limit int, match func(backends.Triple) bool) []backends.Triple {
	l := s.libraries[tenant{app, user}]
	if l == nil {
		return nil
	}
	var out []backends.Triple
	for _, t := range slices.Backward(l.triples) {
		if match(t) {
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b backends.Triple) int { return b.At.Compare(a.At) })
	return out[:min(limit, len(out))]
}
