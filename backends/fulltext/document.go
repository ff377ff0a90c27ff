package fulltext

import (
	"cmp"
	"slices"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

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

// MessageDocument is what a store indexes of a message of a session.
func MessageDocument(session string, stream backends.Stream, m backends.Message) Document {
	d := NewDocument(m.Text, m.Author, m.Time)
	d.Group, d.Run = session, session+"\x01"+stream.Branch+"\x01"+stream.Scope
	return d
}

// NoteDocument is what a store indexes of a note of a session.
func NoteDocument(session string, n backends.Note) Document {
	return Document{Terms: Analyze(n.Text), Group: session}
}

// EntryDocument is what a store indexes of an entry.
func EntryDocument(e backends.Entry) Document { return Document{Terms: Analyze(e.SearchText())} }

// QueryFor is the query that a store asks of each kind's area. Category and tags are applied to what it finds, so it
// finds as many as there may be.
func QueryFor(q backends.SearchQuery) Query {
	limit := q.Limit
	if q.Category != "" || len(q.Tags) > 0 {
		limit = backends.MaxListItems
	}
	return Query{Terms: AnalyzeQuery(q.Text), Group: q.Session, Limit: limit}
}

// Best orders what was found in several areas by score, then by kind, and cuts it to limit. Within a kind the order
// stays.
func Best(found []backends.Found, limit int) []backends.Found {
	slices.SortStableFunc(found, func(a, b backends.Found) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Kind, b.Kind))
	})
	return found[:min(limit, len(found))]
}
