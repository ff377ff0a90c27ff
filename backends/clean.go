package backends

import (
	"slices"
	"strings"
	"time"
)

// CleanText returns s as every store keeps text: valid UTF-8 without NUL bytes, because not every database can hold
// them. What is not representable becomes U+FFFD. A message's exact bytes stay in [Message.Content].
func CleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// CleanTime returns t as every store keeps time: in UTC, to the microsecond.
func CleanTime(t time.Time) time.Time { return t.UTC().Truncate(TimePrecision) }

// Clean returns a deep copy of c as every store keeps it: see [CleanText] and [CleanTime].
func (c Commit) Clean() Commit {
	c.From, c.To = c.From.clean(), c.To.clean()
	c.Observation.Note = c.Observation.clean()
	c.Messages = slices.Clone(c.Messages)
	for i, m := range c.Messages {
		m.InvocationID, m.Author, m.Role = CleanText(m.InvocationID), CleanText(m.Author), CleanText(m.Role)
		m.Text, m.Time = CleanText(m.Text), CleanTime(m.Time)
		m.Content = slices.Clone(m.Content)
		c.Messages[i] = m
	}
	return c
}

// Clean returns a deep copy of c as every store keeps it.
func (c Condense) Clean() Condense {
	c.Reflection.Note = c.Reflection.clean()
	c.Reflection.Sources = slices.Clone(c.Reflection.Sources)
	return c
}

func (n Note) clean() Note {
	n.Text, n.Writer, n.CreatedAt = CleanText(n.Text), CleanText(n.Writer), CleanTime(n.CreatedAt)
	n.Range.StartID, n.Range.EndID = CleanText(n.Range.StartID), CleanText(n.Range.EndID)
	n.Range.StartTime, n.Range.EndTime = CleanTime(n.Range.StartTime), CleanTime(n.Range.EndTime)
	return n
}

func (c Cursor) clean() Cursor {
	c.Time, c.Fingerprint = CleanTime(c.Time), CleanText(c.Fingerprint)
	return c
}
