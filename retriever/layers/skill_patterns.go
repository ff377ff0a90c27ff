package layers

import (
	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/retriever"
)

// SkillPatterns finds how things are done, by words.
func SkillPatterns(s backends.Searcher) retriever.Layer {
	return stored{retriever.SkillPatterns, backends.KindSkill, s, entryItem}
}
