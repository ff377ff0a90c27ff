package layers

import (
	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/retriever"
)

// AgentLearnings finds solutions that worked before, by words. Those that failed since rank lower: a learning's score
// is weighed by its confidence.
func AgentLearnings(s backends.Searcher) retriever.Layer {
	return stored{retriever.AgentLearnings, backends.KindLearning, s, learningItem}
}

func learningItem(f backends.Found) retriever.Item {
	item := entryItem(f)
	item.Score *= f.Entry.Confidence
	return item
}
