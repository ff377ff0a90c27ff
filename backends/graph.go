package backends

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Triple is one statement of a user's graph: subject, predicate, object.
type Triple struct {
	Subject   string
	Predicate string
	Object    string
	Source    Ref       // the document it was drawn from
	At        time.Time // kept to the microsecond
}

// TripleQuery asks for the statements about things.
type TripleQuery struct {
	App, User string   // required
	Session   string   // only those drawn from documents of this session; "" for all
	About     []string // subjects or objects, in either case; at most [MaxListItems]
	Limit     int      // default [DefaultListItems], at most [MaxListItems]
}

// GraphStore keeps triples. Deleting a document, a session, a user or an app removes those drawn from it in the same
// transaction.
type GraphStore interface {
	// PutTriples stores triples, each once. One whose source does not exist (any more) is left out.
	PutTriples(ctx context.Context, app, user string, triples []Triple) error

	// ListTriples returns the triples whose subject or object is one of those named, newest first.
	ListTriples(ctx context.Context, q TripleQuery) ([]Triple, error)

	// TriplesOf returns the triples drawn from the named documents, newest first, at most [MaxListItems].
	TriplesOf(ctx context.Context, app, user string, sources []Ref) ([]Triple, error)
}

// Same reports whether two triples say the same and were drawn from one document.
func (t Triple) Same(u Triple) bool {
	return t.Source == u.Source && Entity(t.Subject) == Entity(u.Subject) &&
		Entity(t.Predicate) == Entity(u.Predicate) && Entity(t.Object) == Entity(u.Object)
}

// Entity is the form in which things are compared: lower case, white space collapsed.
func Entity(name string) string {
	return strings.Join(strings.Fields(strings.ToLower(CleanText(name))), " ")
}

// Normalize fills the defaults in and reports every fault. The error wraps [ErrInvalid] or [ErrTooLarge].
func (q TripleQuery) Normalize() (TripleQuery, error) {
	limit, err := PageLimit(q.Limit)
	q.Limit = limit
	if n := len(q.About); n > MaxListItems {
		return q, fmt.Errorf("%w: %d things named, at most %d are allowed", ErrTooLarge, n, MaxListItems)
	}
	about := make([]string, 0, len(q.About))
	for _, a := range q.About {
		if a = Entity(a); a != "" {
			about = append(about, a)
		}
	}
	q.About = about
	return q, errors.Join(err, ValidateID("app", q.App), ValidateID("user", q.User), validID("session", q.Session, false))
}

// CleanTriples returns a copy of triples as every store keeps them, or every fault of them. The error wraps
// [ErrInvalid] or [ErrTooLarge].
func CleanTriples(app, user string, triples []Triple) ([]Triple, error) {
	if len(triples) > MaxListItems {
		return nil, fmt.Errorf("%w: %d triples, at most %d are stored at once", ErrTooLarge, len(triples), MaxListItems)
	}
	errs := []error{ValidateID("app", app), ValidateID("user", user)}
	out := make([]Triple, len(triples))
	for i, t := range triples {
		t.Subject, t.Predicate, t.Object = strings.TrimSpace(t.Subject), strings.TrimSpace(t.Predicate), strings.TrimSpace(t.Object)
		t.At = CleanTime(t.At)
		errs = append(errs, t.Source.Validate(), ValidateID("subject", t.Subject), ValidateID("predicate", t.Predicate),
			ValidateID("object", t.Object))
		out[i] = t
	}
	return out, errors.Join(errs...)
}
