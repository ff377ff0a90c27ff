package backends

import (
	"errors"
	"fmt"
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

// PageLimit is the number of items a store returns for a limit that a caller named: [DefaultListItems] for 0,
// [ErrInvalid] for less, [ErrTooLarge] for more than [MaxListItems].
func PageLimit(limit int) (int, error) {
	switch {
	case limit < 0:
		return 0, fmt.Errorf("%w: the limit is %d", ErrInvalid, limit)
	case limit > MaxListItems:
		return 0, fmt.Errorf("%w: the limit is %d, at most %d items are returned at once", ErrTooLarge, limit, MaxListItems)
	case limit == 0:
		return DefaultListItems, nil
	}
	return limit, nil
}

// Validate reports every fault of a query for sessions. The error wraps [ErrInvalid] or [ErrTooLarge].
func (q SessionQuery) Validate() error {
	errs := []error{validID("app", q.App, true), validID("user", q.User, false), validID("contains", q.Contains, false)}
	if q.Offset < 0 {
		errs = append(errs, fmt.Errorf("%w: the offset is %d", ErrInvalid, q.Offset))
	}
	_, err := PageLimit(q.Limit)
	return errors.Join(append(errs, err)...)
}
