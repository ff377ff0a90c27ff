// Package graph widens what a search finds along statements about the same things: a [Buffer] stores triples in the
// background, and [Expander] follows them from a result to the documents they were drawn from.
package graph

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/retriever/queue"
)

// Request asks for triples of one user to be stored.
type Request struct {
	ID        string // of the request, for logs
	App, User string
	Triples   []backends.Triple
}

// Buffer stores triples in the background. A full queue drops a request with a warning that carries the request's id,
// and counts it. It is safe for concurrent use.
type Buffer struct {
	*queue.Queue[Request]
}

// NewBuffer returns a buffer that waits for Start.
func NewBuffer(cfg queue.Config, s backends.GraphStore) *Buffer {
	if cfg.Name == "" {
		cfg.Name = "graph"
	}
	return &Buffer{queue.New(cfg, func(r Request) string { return r.ID }, func(ctx context.Context, r Request) error {
		for triples := range slices.Chunk(r.Triples, backends.MaxListItems) {
			if err := s.PutTriples(ctx, r.App, r.User, triples); err != nil {
				return err
			}
		}
		return nil
	})}
}

// Defaults of [Expander].
const (
	DefaultSeeds = 5
	DefaultHops  = 1
	DefaultFade  = 0.5
)

// maxTriples bounds the triples that one hop follows.
const maxTriples = 200

// Expander is a [backends.Searcher] that adds to what another finds the documents whose triples speak of the same
// things. When the graph is not available it is the other searcher alone.
type Expander struct {
	Base  backends.Searcher
	Graph backends.GraphStore

	// Seeds is the number of results, best first, whose triples are followed. Default [DefaultSeeds].
	Seeds int

	// Hops is how far they are followed. Default [DefaultHops].
	Hops int

	// Fade is what a hop leaves of a result's score. Default [DefaultFade].
	Fade float64

	// Logger gets a warning when the graph is not available. Default [slog.Default].
	Logger *slog.Logger
}

var _ backends.Searcher = Expander{}

// Search implements [backends.Searcher]. The query's filters hold for what is added too.
func (e Expander) Search(ctx context.Context, q backends.SearchQuery) ([]backends.Found, error) {
	q, err := q.Normalize()
	if err != nil {
		return nil, err
	}
	found, err := e.Base.Search(ctx, q)
	if err != nil || len(found) == 0 {
		return found, err
	}
	scores := map[backends.Ref]float64{}
	for _, f := range found {
		scores[f.Ref] = f.Score
	}
	added, err := e.expand(ctx, q, found, scores)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		cmp.Or(e.Logger, slog.Default()).WarnContext(ctx, "the graph is left out of a search", "error", err)
		return found, nil
	}
	for _, f := range added {
		if q.Matches(f) {
			f.Score = scores[f.Ref]
			found = append(found, f)
		}
	}
	slices.SortStableFunc(found, func(a, b backends.Found) int { return cmp.Compare(b.Score, a.Score) })
	return found[:min(q.Limit, len(found))], nil
}

// Lookup implements [backends.Searcher].
func (e Expander) Lookup(ctx context.Context, app, user string, refs []backends.Ref) ([]backends.Found, error) {
	return e.Base.Lookup(ctx, app, user, refs)
}

// expand follows the triples of the best results and returns the documents that were not found yet, whose scores it
// adds.
func (e Expander) expand(ctx context.Context, q backends.SearchQuery, found []backends.Found, scores map[backends.Ref]float64) ([]backends.Found, error) {
	hops, fade := cmp.Or(e.Hops, DefaultHops), cmp.Or(e.Fade, DefaultFade)
	frontier := found[:min(cmp.Or(e.Seeds, DefaultSeeds), len(found))]
	var added []backends.Found
	for range hops {
		refs := make([]backends.Ref, len(frontier))
		for i, f := range frontier {
			refs[i] = f.Ref
		}
		own, err := e.Graph.TriplesOf(ctx, q.App, q.User, refs)
		if err != nil {
			return nil, err
		}
		reach := map[string]float64{} // score that a thing passes on
		for _, t := range own {
			for _, thing := range []string{backends.Entity(t.Subject), backends.Entity(t.Object)} {
				reach[thing] = max(reach[thing], fade*scores[t.Source])
			}
		}
		things := make([]string, 0, len(reach))
		for thing := range reach {
			things = append(things, thing)
		}
		slices.Sort(things)
		triples, err := e.Graph.ListTriples(ctx, backends.TripleQuery{
			App: q.App, User: q.User, Session: q.Session, About: things[:min(len(things), maxTriples)], Limit: maxTriples,
		})
		if err != nil {
			return nil, err
		}
		var next []backends.Ref
		for _, t := range triples {
			_, known := scores[t.Source]
			if known || !slices.Contains(q.Kinds, t.Source.Kind) {
				continue
			}
			scores[t.Source] = max(reach[backends.Entity(t.Subject)], reach[backends.Entity(t.Object)])
			next = append(next, t.Source)
		}
		if frontier, err = e.Base.Lookup(ctx, q.App, q.User, next); err != nil {
			return nil, err
		}
		added = append(added, frontier...)
	}
	return added, nil
}
