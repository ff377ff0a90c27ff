package layers

import (
	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/retriever"
)

// Reflections finds reflections of the session, active and archived ones, by words.
func Reflections(s backends.Searcher) retriever.Layer {
	return stored{retriever.Reflections, backends.KindReflection, s, noteItem}
}
