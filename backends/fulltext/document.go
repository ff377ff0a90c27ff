package fulltext

import "time"

// Document is one text to index.
type Document struct {
	Terms []string // repetitions count
	Extra []string // found like Terms, but left out of the document's length: who said it, and when

	// Run names what the document continues, such as a stream of a session. A document and the one added before it under
	// the same name are neighbours: a match of one also counts for the other, at half its weight. "" has no neighbours.
	Run string

	// Group names the documents that [Query.Group] selects, such as a session.
	Group string
}

// NewDocument analyzes a text. A text of one author at one time is also found by the author's name and by the date
// ("May 2023", "8 May"); both may be zero.
func NewDocument(text, author string, at time.Time) Document {
	d := Document{Terms: Analyze(text), Extra: Analyze(author)}
	if !at.IsZero() {
		d.Extra = append(d.Extra, Analyze(at.UTC().Format("2 January 2006"))...)
	}
	return d
}

// postings counts the document's terms.
func (d Document) postings(doc uint32) map[string]Posting {
	length := uint32(len(d.Terms))
	out := make(map[string]Posting, len(d.Terms)+len(d.Extra))
	for _, terms := range [][]string{d.Terms, d.Extra} {
		for _, t := range terms {
			p := out[t]
			out[t] = Posting{Doc: doc, Count: p.Count + 1, Length: length}
		}
	}
	return out
}
