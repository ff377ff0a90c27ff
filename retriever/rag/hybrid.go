package rag

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"github.com/adkmemory/adkmemory/backends"
)

// Parameters of reciprocal rank fusion: the constant that its authors recommend (Cormack et al., SIGIR 2009), and how
// deep both rankings are read at least.
const (
	rrfConstant = 60
	minDepth    = 50
)

// DefaultWeight is what a rank by similarity counts beside a rank by words.
const DefaultWeight = 1

// localWeight is that of [Local]. It knows nothing that words do not, so it never changes the order of what words find
// and only adds what they miss.
const localWeight = 1e-6

// Hybrid is a [backends.Searcher] that joins full-text search and similarity by reciprocal rank fusion. When embedding
// the query fails it is full-text search alone.
type Hybrid struct {
	Words    backends.Searcher
	Vectors  backends.VectorStore
	Embedder Embedder

	// Weight of a rank by similarity beside one by words. Default [DefaultWeight]; for [Local] next to
	// nothing, so that it adds what words miss behind what they find.
	Weight float64

	// Logger gets a warning when similarity is not available. Default [slog.Default].
	Logger *slog.Logger
}

var _ backends.Searcher = Hybrid{}

// Search implements [backends.Searcher]. Filters hold for both ways of finding. Scores are of the fusion.
func (h Hybrid) Search(ctx context.Context, q backends.SearchQuery) ([]backends.Found, error) {
	q, err := q.Normalize()
	if err != nil {
		return nil, err
	}
	limit := q.Limit
	q.Limit = min(max(2*limit, minDepth), backends.MaxListItems)
	words, err := h.Words.Search(ctx, q)
	if err != nil {
		return nil, err
	}
	similar, err := h.similar(ctx, q)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		cmp.Or(h.Logger, slog.Default()).WarnContext(ctx, "similarity is left out of a search", "error", err)
	}
	scores := map[backends.Ref]float64{}
	found := map[backends.Ref]backends.Found{}
	for i, f := range words {
		scores[f.Ref] += 1 / float64(rrfConstant+i+1)
		found[f.Ref] = f
	}
	var missing []backends.Ref
	for i, s := range similar {
		scores[s.Ref] += h.weight() / float64(rrfConstant+i+1)
		if _, known := found[s.Ref]; !known {
			missing = append(missing, s.Ref)
		}
	}
	more, err := h.Words.Lookup(ctx, q.App, q.User, missing)
	if err != nil {
		return nil, err
	}
	for _, f := range more {
		if q.Matches(f) {
			found[f.Ref] = f
		}
	}
	out := make([]backends.Found, 0, len(found))
	for _, f := range found {
		f.Score = scores[f.Ref]
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b backends.Found) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), a.Compare(b.Ref))
	})
	return out[:min(limit, len(out))], nil
}

// Lookup implements [backends.Searcher].
func (h Hybrid) Lookup(ctx context.Context, app, user string, refs []backends.Ref) ([]backends.Found, error) {
	return h.Words.Lookup(ctx, app, user, refs)
}

func (h Hybrid) weight() float64 {
	if h.Weight > 0 {
		return h.Weight
	}
	if _, local := h.Embedder.(Local); local {
		return localWeight
	}
	return DefaultWeight
}

// similar returns what is near to the query.
func (h Hybrid) similar(ctx context.Context, q backends.SearchQuery) ([]backends.ScoredRef, error) {
	if q.Text == "" {
		return nil, nil
	}
	texts := []string{q.Text}
	values, err := h.Embedder.Embed(ctx, Query, texts)
	if err == nil {
		err = complete(h.Embedder.Model(), texts, values)
	}
	if err != nil {
		return nil, err
	}
	near, err := h.Vectors.NearestVectors(ctx, backends.VectorQuery{
		App: q.App, User: q.User, Session: q.Session, Kinds: q.Kinds, Model: h.Embedder.Model(), Values: values[0], Limit: q.Limit,
	})
	return slices.DeleteFunc(near, func(s backends.ScoredRef) bool { return s.Score <= 0 }), err
}
