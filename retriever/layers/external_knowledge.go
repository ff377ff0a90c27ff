package layers

import (
	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/retriever"
)

// ExternalKnowledge finds references to outside sources, by words, and names the source of each.
func ExternalKnowledge(s backends.Searcher) retriever.Layer {
	return stored{retriever.ExternalKnowledge, backends.KindReference, s, referenceItem}
}

func referenceItem(f backends.Found) retriever.Item {
	item := entryItem(f)
	if source := f.Entry.Source; source != "" {
		item.Text += " (" + source + ")"
	}
	return item
}
