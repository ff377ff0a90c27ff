package layers

import (
	"context"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/retriever"
)

// Standard returns the layers that a store alone can serve: user knowledge, skill patterns, external knowledge, agent
// learnings, observations and reflections. A hybrid or graph searcher of package rag or graph will do as well.
func Standard(s backends.Searcher) []retriever.Layer {
	return []retriever.Layer{
		UserKnowledge(s), SkillPatterns(s), ExternalKnowledge(s), AgentLearnings(s), Observations(s), Reflections(s),
	}
}

// stored is a layer over documents of one kind.
type stored struct {
	name   string
	kind   backends.Kind
	search backends.Searcher
	item   func(backends.Found) retriever.Item
}

// Name implements [retriever.Layer].
func (l stored) Name() string { return l.name }

// Retrieve implements [retriever.Layer]. Without a session key there is nobody whose documents could be searched.
func (l stored) Retrieve(ctx context.Context, q retriever.Query) ([]retriever.Item, error) {
	if q.Key.IsZero() {
		return nil, nil
	}
	query := backends.SearchQuery{
		App: q.Key.App, User: q.Key.User, Kinds: []backends.Kind{l.kind}, Text: q.Text, Limit: min(q.Limit, backends.MaxListItems),
	}
	if l.kind.OfSession() {
		query.Session = q.Key.Session
	}
	found, err := l.search.Search(ctx, query)
	if err != nil {
		return nil, err
	}
	items := make([]retriever.Item, len(found))
	for i, f := range found {
		items[i] = l.item(f)
	}
	return items, nil
}

// entryItem shows an entry by its title and text.
func entryItem(f backends.Found) retriever.Item {
	return retriever.Item{Key: f.ID, Title: f.Entry.Title, Text: f.Entry.Text, Score: f.Score}
}
