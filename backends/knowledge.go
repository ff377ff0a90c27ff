package backends

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Limits of an entry. A store refuses what is past them with [ErrTooLarge].
const (
	MaxEntryTags     = 64
	MaxEntryVersions = 20 // older ones are dropped
)

// Entry is something an agent knows across sessions, for one user of one app.
type Entry struct {
	Kind     Kind   // [KindKnowledge], [KindSkill], [KindReference] or [KindLearning]
	Key      string // unique within the kind; default: a hash of the title and text, so that equal texts are one entry
	Title    string
	Text     string // what is searched, with the title, tags and category
	Category string
	Tags     []string // lower case, sorted, without repetitions
	Source   string   // where it comes from: a URL, a file, a session

	// Confidence of a learning in [0, 1]. It begins at the given value (0.5 for 0); each outcome that is recorded moves
	// it: (2*first + successes) / (2 + successes + failures). A new version begins anew unless its text is the same.
	Confidence float64
	Successes  int
	Failures   int

	Version   int       // 1, 2, …; set by the store
	CreatedAt time.Time // of the first version; set by the store
	UpdatedAt time.Time // of this version, or of the last outcome; set by the store
}

// KnowledgeStore keeps entries. [Searcher] finds them. Every method takes the app and the user that own them; nobody
// else's are seen or touched. DeleteUser and DeleteApp remove them, deleting a session does not.
type KnowledgeStore interface {
	// SaveEntry stores an entry and returns it as stored. Under a key that exists it becomes the next version, unless
	// nothing differs: then the stored one is returned and nothing is written. A Version other than 0 must be that of the
	// stored entry, else [ErrConflict].
	SaveEntry(ctx context.Context, app, user string, e Entry) (Entry, error)

	// GetEntry returns the newest version. [ErrNotFound] without one.
	GetEntry(ctx context.Context, app, user string, kind Kind, key string) (Entry, error)

	// ListEntries returns newest versions, the last updated first.
	ListEntries(ctx context.Context, q EntryQuery) ([]Entry, error)

	// ListVersions returns the versions of an entry that are still kept, newest first.
	ListVersions(ctx context.Context, app, user string, kind Kind, key string) ([]Entry, error)

	// DeleteEntry removes an entry with all its versions, its place in the index, its vectors and the triples drawn from
	// it. Deleting what is not there returns nil.
	DeleteEntry(ctx context.Context, app, user string, kind Kind, key string) error

	// RecordOutcome counts a success or a failure of an entry and returns it with its new confidence. [ErrNotFound]
	// without one.
	RecordOutcome(ctx context.Context, app, user string, kind Kind, key string, success bool) (Entry, error)
}

// EntryQuery selects a page of a user's entries.
type EntryQuery struct {
	App, User string   // required
	Kind      Kind     // "" for all
	Category  string   // "" for all
	Tags      []string // all of them
	Offset    int
	Limit     int // default [DefaultListItems], at most [MaxListItems]
}

// Normalize fills the defaults in and reports every fault. The error wraps [ErrInvalid] or [ErrTooLarge].
func (q EntryQuery) Normalize() (EntryQuery, error) {
	limit, err := PageLimit(q.Limit)
	q.Limit = limit
	errs := []error{err, ValidateID("app", q.App), ValidateID("user", q.User)}
	if q.Kind != "" {
		errs = append(errs, q.Kind.validateEntry())
	}
	if q.Offset < 0 {
		errs = append(errs, fmt.Errorf("%w: the offset is %d", ErrInvalid, q.Offset))
	}
	return q, errors.Join(errs...)
}

// Matches reports whether an entry passes the query's kind, category and tags.
func (q EntryQuery) Matches(e Entry) bool {
	return (q.Kind == "" || q.Kind == e.Kind) && e.within(q.Category, q.Tags)
}

func (e Entry) within(category string, tags []string) bool {
	if category != "" && category != e.Category {
		return false
	}
	for _, t := range tags {
		if !slices.Contains(e.Tags, strings.ToLower(t)) {
			return false
		}
	}
	return true
}

// ValidateEntryKey reports what no [KnowledgeStore] could hold. The error wraps [ErrInvalid].
func ValidateEntryKey(app, user string, kind Kind, key string) error {
	return errors.Join(ValidateID("app", app), ValidateID("user", user), kind.validateEntry(), ValidateID("key", key))
}

func (k Kind) validateEntry() error {
	if !slices.Contains(EntryKinds(), k) {
		return fmt.Errorf("%w: %q is no kind of entry", ErrInvalid, string(k))
	}
	return nil
}

// Clean returns a deep copy of e as every store keeps it, with its key, or every fault of it. The error wraps
// [ErrInvalid] or [ErrTooLarge].
func (e Entry) Clean() (Entry, error) {
	e.Title, e.Text, e.Source = CleanText(e.Title), CleanText(e.Text), CleanText(e.Source)
	e.Category = CleanText(strings.TrimSpace(e.Category))
	var errs []error
	if e.Text == "" && e.Title == "" {
		errs = append(errs, fmt.Errorf("%w: the entry is empty", ErrInvalid))
	}
	if n := len(e.Title) + len(e.Text) + len(e.Source); n > MaxTextBytes {
		errs = append(errs, fmt.Errorf("%w: the entry is %d bytes, at most %d are allowed", ErrTooLarge, n, MaxTextBytes))
	}
	if n := len(e.Tags); n > MaxEntryTags {
		errs = append(errs, fmt.Errorf("%w: the entry has %d tags, at most %d are allowed", ErrTooLarge, n, MaxEntryTags))
	}
	if e.Confidence < 0 || e.Confidence > 1 || e.Confidence != e.Confidence {
		errs = append(errs, fmt.Errorf("%w: the confidence is not between 0 and 1", ErrInvalid))
	}
	tags := make([]string, 0, len(e.Tags))
	for _, t := range e.Tags {
		t = strings.ToLower(strings.TrimSpace(t))
		errs = append(errs, ValidateID("tag", t))
		tags = append(tags, t)
	}
	slices.Sort(tags)
	e.Tags = slices.Compact(tags)
	if e.Key == "" {
		// Case and spacing do not make a text another one.
		norm := strings.Join(strings.Fields(strings.ToLower(e.Title+" \x00 "+e.Text)), " ")
		sum := sha256.Sum256([]byte(norm))
		e.Key = hex.EncodeToString(sum[:16])
	}
	errs = append(errs, e.Kind.validateEntry(), ValidateID("key", e.Key), validID("category", e.Category, false))
	return e, errors.Join(errs...)
}

// Next returns what a store keeps when e, which was cleaned, is saved at now over old, nil for none; changed is false
// when that is old itself. [ErrConflict] when e names another version. It is the one rule for all backends.
func (e Entry) Next(old *Entry, now time.Time) (next Entry, changed bool, err error) {
	stored := 0
	if old != nil {
		stored = old.Version
	}
	if e.Version != 0 && e.Version != stored {
		return Entry{}, false, ErrConflict
	}
	now = CleanTime(now)
	e.Version, e.CreatedAt, e.UpdatedAt = stored+1, now, now
	e.Successes, e.Failures, e.Confidence = 0, 0, cmp.Or(e.Confidence, 0.5)
	if old == nil {
		return e, true, nil
	}
	e.CreatedAt = old.CreatedAt
	if e.Title == old.Title && e.Text == old.Text {
		if e.Category == old.Category && e.Source == old.Source && slices.Equal(e.Tags, old.Tags) {
			return *old, false, nil
		}
		e.Successes, e.Failures, e.Confidence = old.Successes, old.Failures, old.Confidence
	}
	return e, true, nil
}

// WithOutcome returns e after one more success or failure at now.
func (e Entry) WithOutcome(success bool, now time.Time) Entry {
	n := float64(2 + e.Successes + e.Failures)
	hit := 0.0
	if success {
		e.Successes++
		hit = 1
	} else {
		e.Failures++
	}
	e.Confidence = (e.Confidence*n + hit) / (n + 1)
	e.UpdatedAt = CleanTime(now)
	return e
}

// SearchText is what a store indexes of an entry.
func (e Entry) SearchText() string {
	return strings.Join([]string{e.Title, e.Text, e.Category, strings.Join(e.Tags, " ")}, "\n")
}
