package backends

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// MaxDimensions bounds a vector. A store refuses longer ones with [ErrTooLarge].
const MaxDimensions = 8192

// Vector is the embedding of a document.
type Vector struct {
	Ref
	Model  string    // which embedder made it; vectors of different models are never compared
	Values []float32 // any length but zero
}

// VectorQuery asks for the documents nearest to a vector.
type VectorQuery struct {
	App, User string // required
	Session   string // only documents of this session; "" for all
	Kinds     []Kind // nil for all
	Model     string // required
	Values    []float32
	Limit     int // default [DefaultListItems], at most [MaxListItems]
}

// ScoredRef is a reference with its cosine similarity.
type ScoredRef struct {
	Ref
	Score float64
}

// VectorStore keeps embeddings. Deleting a document, a session, a user or an app removes theirs in the same
// transaction.
type VectorStore interface {
	// PutVectors stores vectors over those of the same document and model. A vector of a document that does not exist
	// (any more) is left out: an embedding made in the background never outlives its text.
	PutVectors(ctx context.Context, app, user string, vectors []Vector) error

	// NearestVectors returns the documents by cosine similarity, the most similar first; those of other dimensions are
	// left out. It compares with every vector of the user that passes the filters.
	NearestVectors(ctx context.Context, q VectorQuery) ([]ScoredRef, error)
}

// Normalize fills the defaults in and reports every fault. The error wraps [ErrInvalid] or [ErrTooLarge].
func (q VectorQuery) Normalize() (VectorQuery, error) {
	limit, err := PageLimit(q.Limit)
	q.Limit = limit
	errs := []error{
		err, ValidateID("app", q.App), ValidateID("user", q.User), validID("session", q.Session, false),
		ValidateID("model", q.Model), validValues(q.Values),
	}
	for _, k := range q.Kinds {
		errs = append(errs, k.validate())
	}
	return q, errors.Join(errs...)
}

// Admits reports whether a document passes the query's session and kinds.
func (q VectorQuery) Admits(r Ref) bool {
	return (q.Session == "" || q.Session == r.Session) && (len(q.Kinds) == 0 || slices.Contains(q.Kinds, r.Kind))
}

// Cosine is the cosine similarity of two vectors of one length; 0 when one of them is zero.
func Cosine(a, b []float32) float64 {
	var dot, aa, bb float32
	for i, x := range a {
		y := b[i]
		dot += x * y
		aa += x * x
		bb += y * y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return float64(dot) / math.Sqrt(float64(aa)*float64(bb))
}

// ValidateVectors reports what no [VectorStore] would take. The error wraps [ErrInvalid] or [ErrTooLarge].
func ValidateVectors(app, user string, vectors []Vector) error {
	if len(vectors) > MaxListItems {
		return fmt.Errorf("%w: %d vectors, at most %d are stored at once", ErrTooLarge, len(vectors), MaxListItems)
	}
	errs := []error{ValidateID("app", app), ValidateID("user", user)}
	for _, v := range vectors {
		errs = append(errs, v.Ref.Validate(), ValidateID("model", v.Model), validValues(v.Values))
	}
	return errors.Join(errs...)
}

func validValues(values []float32) error {
	switch n := len(values); {
	case n == 0:
		return fmt.Errorf("%w: the vector is empty", ErrInvalid)
	case n > MaxDimensions:
		return fmt.Errorf("%w: the vector has %d dimensions, at most %d are allowed", ErrTooLarge, n, MaxDimensions)
	}
	for _, v := range values {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return fmt.Errorf("%w: the vector holds a value that is no number", ErrInvalid)
		}
	}
	return nil
}
