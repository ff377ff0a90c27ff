package layers

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"google.golang.org/adk/v2/tool"

	"github.com/adkmemory/adkmemory/retriever"
)

// ToolDescriptor is what an agent may be told about a tool.
type ToolDescriptor struct {
	Name        string
	Description string
}

// ToolRegistryProvider knows the agent's tools. Implementations are safe for concurrent use.
type ToolRegistryProvider interface {
	// ListTools returns all tools.
	ListTools() []ToolDescriptor

	// SearchTools returns the tools whose name or description contains the query, in either case, at most limit; a limit
	// of 0 or less is none.
	SearchTools(query string, limit int) []ToolDescriptor
}

// ToolRegistryAdapter is a [ToolRegistryProvider] over a slice of ADK tools.
type ToolRegistryAdapter struct{ tools []ToolDescriptor }

// NewToolRegistryAdapter copies what it needs of the tools: later changes of the slice are not seen.
func NewToolRegistryAdapter(tools []tool.Tool) *ToolRegistryAdapter {
	a := &ToolRegistryAdapter{}
	for _, t := range tools {
		if t != nil {
			a.tools = append(a.tools, ToolDescriptor{Name: t.Name(), Description: t.Description()})
		}
	}
	return a
}

// ListTools implements [ToolRegistryProvider].
func (a *ToolRegistryAdapter) ListTools() []ToolDescriptor { return slices.Clone(a.tools) }

// SearchTools implements [ToolRegistryProvider].
func (a *ToolRegistryAdapter) SearchTools(query string, limit int) []ToolDescriptor {
	query = strings.ToLower(query)
	var out []ToolDescriptor
	for _, t := range a.tools {
		if limit > 0 && len(out) == limit {
			break
		}
		if strings.Contains(strings.ToLower(t.Name), query) || strings.Contains(strings.ToLower(t.Description), query) {
			out = append(out, t)
		}
	}
	return out
}

// Tools finds the tools that match any of the query's keywords; those that match more of them rank first. p may be nil:
// then it finds none.
func Tools(p ToolRegistryProvider) retriever.Layer { return toolRegistry{p} }

type toolRegistry struct{ provider ToolRegistryProvider }

// Name implements [retriever.Layer].
func (toolRegistry) Name() string { return retriever.ToolRegistry }

// Retrieve implements [retriever.Layer].
func (l toolRegistry) Retrieve(_ context.Context, q retriever.Query) ([]retriever.Item, error) {
	if l.provider == nil {
		return nil, nil
	}
	matches := map[string]*retriever.Item{}
	var items []*retriever.Item
	for _, word := range q.Keywords {
		for _, t := range l.provider.SearchTools(word, 0) {
			if matches[t.Name] == nil {
				matches[t.Name] = &retriever.Item{Key: t.Name, Text: t.Description}
				items = append(items, matches[t.Name])
			}
			matches[t.Name].Score++
			if strings.Contains(strings.ToLower(t.Name), word) {
				matches[t.Name].Score += 0.01 // among equals, one that is named so
			}
		}
	}
	slices.SortStableFunc(items, func(a, b *retriever.Item) int { return cmp.Compare(b.Score, a.Score) })
	out := make([]retriever.Item, 0, len(items))
	for _, item := range items[:min(len(items), q.Limit)] {
		out = append(out, *item)
	}
	return out, nil
}
