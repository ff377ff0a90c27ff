package layers

import (
	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/retriever"
)

// UserKnowledge finds what is known about the user, by words.
func UserKnowledge(s backends.Searcher) retriever.Layer {
	return stored{retriever.UserKnowledge, backends.KindKnowledge, s, entryItem}
}
