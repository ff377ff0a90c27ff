package backends

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// Kind says what a search finds.
type Kind string

// The kinds of documents. Messages are those in the archive, notes are active and archived ones.
const (
	KindMessage     Kind = "message"
	KindObservation Kind = "observation"
	KindReflection  Kind = "reflection"
	KindKnowledge   Kind = "knowledge" // an [Entry]: what is known about a user
	KindSkill       Kind = "skill"     // an [Entry]: how something is done
	KindReference   Kind = "reference" // an [Entry]: a source outside
	KindLearning    Kind = "learning"  // an [Entry]: a solution that worked before
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return append([]Kind{KindMessage, KindObservation, KindReflection}, EntryKinds()...)
}

// EntryKinds returns the kinds of [Entry].
func EntryKinds() []Kind { return []Kind{KindKnowledge, KindSkill, KindReference, KindLearning} }

// Searcher finds text by words, in what is stored about one user of one app. All backends rank alike: BM25 over the
// documents of one kind of this user alone, so that nobody else's rows change a rank.
//
// What the store writes is found as soon as the write returns, and what it deletes is gone in the same transaction.
type Searcher interface {
	// Search returns the documents that share a word with the text, best first. The text has no syntax. A text without
	// words (stop words do not count) finds nothing.
	Search(ctx context.Context, q SearchQuery) ([]Found, error)

	// Lookup returns the named documents in the order of refs, without those that do not exist. At most [MaxListItems].
	Lookup(ctx context.Context, app, user string, refs []Ref) ([]Found, error)
}

// SearchQuery asks for documents of one user.
type SearchQuery struct {
	App, User string // required
	Session   string // only messages and notes of this session; "" for all
	Kinds     []Kind // default: messages, observations and reflections
	Text      string
	Category  string   // only entries of this category; "" for all
	Tags      []string // only entries with all of these tags
	Limit     int      // default [DefaultListItems], at most [MaxListItems]
}

// Ref names a document of a user.
type Ref struct {
	Kind    Kind
	Session string // of a message or a note
	ID      string // the message's or note's id, or the entry's key
}

// Found is a document with its score. Exactly one of the three pointers is set. Scores are comparable within one result
// only.
type Found struct {
	Ref
	Score   float64
	Message *StoredMessage
	Note    *StoredNote
	Entry   *Entry
}

// Text is the document's text.
func (f Found) Text() string {
	switch {
	case f.Message != nil:
		return f.Message.Text
	case f.Note != nil:
		return f.Note.Text
	case f.Entry != nil:
		return f.Entry.Text
	}
	return ""
}

// Matches reports whether an entry passes the query's category and tags; what is no entry always does.
func (q SearchQuery) Matches(f Found) bool {
	return f.Entry == nil || f.Entry.within(q.Category, q.Tags)
}

// Normalize fills the defaults in and reports every fault. The error wraps [ErrInvalid] or [ErrTooLarge].
func (q SearchQuery) Normalize() (SearchQuery, error) {
	limit, err := PageLimit(q.Limit)
	q.Limit = limit
	if len(q.Kinds) == 0 {
		q.Kinds = []Kind{KindMessage, KindObservation, KindReflection}
	}
	errs := []error{err, ValidateID("app", q.App), ValidateID("user", q.User), validID("session", q.Session, false)}
	for _, k := range q.Kinds {
		errs = append(errs, k.validate())
	}
	return q, errors.Join(errs...)
}

// ValidateRefs reports what no [Searcher] would look up. The error wraps [ErrInvalid] or [ErrTooLarge].
func ValidateRefs(app, user string, refs []Ref) error {
	errs := []error{ValidateID("app", app), ValidateID("user", user)}
	if len(refs) > MaxListItems {
		return fmt.Errorf("%w: %d documents named, at most %d are returned at once", ErrTooLarge, len(refs), MaxListItems)
	}
	for _, r := range refs {
		errs = append(errs, r.Validate())
	}
	return errors.Join(errs...)
}

// Validate reports every fault of a reference. The error wraps [ErrInvalid].
func (r Ref) Validate() error {
	return errors.Join(r.Kind.validate(), ValidateID("document id", r.ID),
		validID("session", r.Session, r.Kind.OfSession()))
}

// Compare orders references by kind, session and id.
func (r Ref) Compare(o Ref) int {
	return cmp.Or(cmp.Compare(r.Kind, o.Kind), cmp.Compare(r.Session, o.Session), cmp.Compare(r.ID, o.ID))
}

// OfSession reports whether documents of this kind belong to a session; the others belong to the user.
func (k Kind) OfSession() bool {
	return k == KindMessage || k == KindObservation || k == KindReflection
}

func (k Kind) validate() error {
	for _, known := range Kinds() {
		if k == known {
			return nil
		}
	}
	return fmt.Errorf("%w: %q is no kind of document", ErrInvalid, string(k))
}

// Appender stores messages that no observation covers (yet).
type Appender interface {
	// AppendMessages adds messages to a stream's archive, without those whose ids it already holds, and returns how many
	// were new. It moves no cursor: a later commit that covers such a message takes it over.
	AppendMessages(ctx context.Context, key SessionKey, stream Stream, messages []Message) (int, error)
}

// CleanMessages returns a deep copy of messages as every store keeps them, or every fault of them. The error wraps
// [ErrInvalid] or [ErrTooLarge].
func CleanMessages(stream Stream, messages []Message) ([]Message, error) {
	// A commit's rules for messages are the rules for messages.
	c := Commit{To: Cursor{MessageID: "-"}, Messages: messages}
	c.Observation.Note = Note{ID: "-", Text: "-", Stream: stream}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c.Clean().Messages, nil
}
