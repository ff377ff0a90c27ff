package inspect

import (
	"strconv"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

// card is a note as shown.
type card struct {
	ID, Link   string
	Kind       string // "Observation" or "Reflection"
	Class      string // for its colour
	Generation int
	Seq        int64
	Text       text
	Tokens     int
	Writer     string
	Created    time.Time
	From, To   time.Time
	First      int // index of the first message
	Last       int
	Count      int // messages by index
	Stream     string
	Active     bool
	ParentLink string
	Sources    int
	Messages   []message // the first ones
	More       bool      // there are more than those
}

func newCard(key backends.SessionKey, n backends.StoredNote) card {
	c := card{
		ID: n.ID, Link: link("note", key, "id", n.ID), Kind: "Observation", Class: classOf(n.Generation),
		Generation: n.Generation, Seq: n.Seq, Text: cut(n.Text, maxText), Tokens: n.Tokens, Writer: n.Writer,
		Created: n.CreatedAt, From: n.Range.StartTime, To: n.Range.EndTime, First: int(n.Range.Start), Last: int(n.Range.End),
		Count: messagesOf(n.Range), Stream: streamName(n.Stream), Active: n.Active, Sources: len(n.Sources),
	}
	if n.Generation > 0 {
		c.Kind = "Reflection"
	}
	if n.ParentID != "" {
		c.ParentLink = link("note", key, "id", n.ParentID)
	}
	return c
}

// Name is what a note is called in headings and links.
func (c card) Name() string { return noteName(c.Generation, c.Seq) }

func noteName(generation int, seq int64) string {
	if generation == 0 {
		return "Observation " + strconv.FormatInt(seq, 10)
	}
	return "Reflection " + strconv.FormatInt(seq, 10) + ", generation " + strconv.Itoa(generation)
}

func classOf(generation int) string {
	switch {
	case generation == 0:
		return "observation"
	case generation == 1:
		return "reflection"
	default:
		return "deep"
	}
}

func messagesOf(r backends.Range) int {
	const limit = 1 << 30 // indices come from outside
	return int(min(limit, max(1, r.End-r.Start+1)))
}

// streamName names a stream other than the one that nearly every session has alone.
func streamName(s backends.Stream) string {
	switch {
	case s == backends.Stream{}:
		return ""
	case s.Scope == "":
		return "branch " + s.Branch
	case s.Branch == "":
		return "scope " + s.Scope
	default:
		return "branch " + s.Branch + ", scope " + s.Scope
	}
}
