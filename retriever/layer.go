package retriever

import (
	"context"

	"github.com/adkmemory/adkmemory/backends"
)

// The names of the eight layers.
const (
	RuntimeContext    = "runtime-context"
	ToolRegistry      = "tool-registry"
	UserKnowledge     = "user-knowledge"
	AgentLearnings    = "agent-learnings"
	SkillPatterns     = "skill-patterns"
	ExternalKnowledge = "external-knowledge"
	Observations      = "observations"
	Reflections       = "reflections"
)

// DefaultLayers returns the layers that are asked when a request names none.
func DefaultLayers() []string {
	return []string{UserKnowledge, SkillPatterns, ExternalKnowledge, AgentLearnings}
}

// Layer is one source of context. Implementations are safe for concurrent use and give up when ctx is done; one that
// does not costs its deadline and nothing else.
type Layer interface {
	// Name is unique within a [Retriever]. A name that is none of the eight is also the title of the layer's section.
	Name() string

	// Retrieve returns at most q.Limit items, in any order. Nothing found is no error. It must return only what belongs
	// to q.Key's app and user.
	Retrieve(ctx context.Context, q Query) ([]Item, error)
}

// Query is what a layer is asked.
type Query struct {
	Text     string              // what the user said
	Keywords []string            // see [Keywords]; never empty
	Key      backends.SessionKey // whose; zero when there is no session key
	Limit    int                 // at least 1
}

// Item is one thing that a layer knows.
type Item struct {
	Layer string  // set by the retriever
	Key   string  // names the item within its layer
	Title string  // optional, one line
	Text  string  // untrusted; it is fenced when it is rendered
	Score float64 // higher ranks first, within the layer
}
