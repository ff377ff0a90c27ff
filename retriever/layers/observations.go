package layers

import (
	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/retriever"
)

// Observations finds observations of the session, active and archived ones, by words.
func Observations(s backends.Searcher) retriever.Layer {
	return stored{retriever.Observations, backends.KindObservation, s, noteItem}
}

// noteItem shows a note under the days it covers.
func noteItem(f backends.Found) retriever.Item {
	item := retriever.Item{Key: f.ID, Text: f.Note.Text, Score: f.Score}
	const day = "2006-01-02"
	start, end := f.Note.Range.StartTime, f.Note.Range.EndTime
	switch {
	case start.IsZero() || end.IsZero():
	case start.Format(day) == end.Format(day):
		item.Title = start.Format(day)
	default:
		item.Title = start.Format(day) + " to " + end.Format(day)
	}
	return item
}
