package backends

import (
	"context"
	"time"
)

// Store is everything the middleware asks of a backend. Implementations are safe for concurrent use, also by several
// processes where the backend allows it, and take a cancelled context as a reason to stop: what was not committed by
// then has no effect.
//
// Every method validates its key first ([ErrInvalid]) and returns [ErrClosed] after Close.
type Store interface {
	Loader
	Committer
	Lister
	Archive
	Deleter
	Leaser

	// Close releases what the store holds. It is idempotent.
	Close() error
}

// Loader reads the state that a turn needs.
type Loader interface {
	// Load returns the session's snapshot, taken in one consistent view. It returns nil when the session still carries
	// the stamp have, at the cost of one query; a zero have always returns a snapshot. A session without state has an
	// empty snapshot with the zero stamp; a deleted one has an empty snapshot with a non-zero stamp until its tombstone
	// is swept.
	Load(ctx context.Context, key SessionKey, have Stamp) (*Snapshot, error)
}

// Committer writes notes. Each call is one transaction: all of it happens or nothing.
type Committer interface {
	// Commit stores an observation and the messages it covers, and moves the stream's cursor from From to To.
	// It returns the observation as stored, with Seq set. [ErrConflict] when the session's epoch or the stream's cursor
	// is not the named one, or the session already holds the note's id or the stream a message's id: of any number of
	// concurrent commits from one cursor exactly one succeeds. A commit with a tombstone's epoch revives the session.
	Commit(ctx context.Context, key SessionKey, c Commit) (Observation, error)

	// Condense stores a reflection and takes exactly its sources out of the active set, into the archive unless Discard
	// is set. [ErrConflict] when the epoch differs, a source is not active any more, or the session already holds the
	// reflection's id. [ErrInvalid] when the sources are of several kinds or streams, or the generation is not theirs
	// plus one.
	Condense(ctx context.Context, key SessionKey, c Condense) (Reflection, error)

	// RebaseCursor sets the index of a stream's cursor to 0 after a compaction replaced the messages up to it by one
	// summary (CMP-2). [ErrConflict] when the epoch or the cursor is not the named one.
	RebaseCursor(ctx context.Context, key SessionKey, epoch string, stream Stream, from Cursor) error
}

// Lister reads notes without a snapshot.
type Lister interface {
	// ListRecentObservations returns the n newest active observations, oldest first; n <= 0 returns all of them.
	ListRecentObservations(ctx context.Context, key SessionKey, n int) ([]Observation, error)

	// ListRecentReflections returns the n newest active reflections, oldest first; n <= 0 returns all of them.
	ListRecentReflections(ctx context.Context, key SessionKey, n int) ([]Reflection, error)

	// ListSessions returns the sessions of an app (and of one user, unless user is empty) that hold any memory, newest
	// write first, one page after the named one.
	ListSessions(ctx context.Context, q SessionQuery) ([]SessionInfo, error)
}

// SessionQuery selects sessions of one app.
type SessionQuery struct {
	App      string // required
	User     string // optional
	Contains string // optional: part of the user's or the session's id, ASCII letters in either case
	Offset   int
	Limit    int // default [DefaultListItems], at most [MaxListItems]
}

// SessionInfo is one line in a list of sessions.
type SessionInfo struct {
	Key          SessionKey
	Observations int // active
	Reflections  int // active
	Messages     int // archived
	UpdatedAt    time.Time
}

// Archive reads what was compressed.
type Archive interface {
	// ListMessages returns archived messages in the order they were stored.
	ListMessages(ctx context.Context, key SessionKey, q MessageQuery) ([]StoredMessage, error)

	// ListNotes returns notes, active and archived, in the order they were stored.
	ListNotes(ctx context.Context, key SessionKey, q NoteQuery) ([]StoredNote, error)
}

// MessageQuery selects a page of a session's archived messages.
type MessageQuery struct {
	ObservationID string // only the messages this observation covers; "" for all
	AfterSeq      int64  // only messages stored after this one
	Limit         int    // default [DefaultListItems], at most [MaxListItems]
}

// NoteQuery selects a page of a session's notes.
type NoteQuery struct {
	IDs      []string // only these, at most [MaxListItems]; nil for all
	AfterSeq int64    // only notes stored after this one
	Limit    int      // default [DefaultListItems], at most [MaxListItems]
}

// StoredNote is an observation or a reflection as an archive returns it.
type StoredNote struct {
	Note
	Generation int      // 0 for an observation
	Sources    []string // of a reflection
	Active     bool     // false once condensed
	ParentID   string   // the reflection that condensed it; "" while active
}

// Deleter removes memory. Deleting what is not there returns nil.
type Deleter interface {
	// DeleteObservationsBySession removes a session's observations, active and archived. Other sessions, reflections,
	// archived messages and the cursor stay: what was observed and deleted is forgotten, not observed again.
	DeleteObservationsBySession(ctx context.Context, key SessionKey) error

	// DeleteReflectionsBySession does the same for reflections.
	DeleteReflectionsBySession(ctx context.Context, key SessionKey) error

	// DeleteSession removes every row about a session, archive and indexes included, and leaves a tombstone with a new
	// epoch, so that work in flight fails with [ErrConflict] instead of bringing notes back.
	DeleteSession(ctx context.Context, key SessionKey) error

	// DeleteUser does the same for all sessions of a user, and for what is kept about the user across sessions.
	DeleteUser(ctx context.Context, app, user string) error

	// DeleteApp does the same for a whole app.
	DeleteApp(ctx context.Context, app string) error

	// Sweep deletes sessions without a write for longer than idle (0 keeps them all) as DeleteSession does, and removes
	// tombstones older than [TombstoneTTL]. It works in bounded batches and returns the number of sessions it deleted.
	Sweep(ctx context.Context, idle time.Duration) (int, error)
}

// Leaser hands out advisory leases. A lease saves double model calls when several processes serve one session;
// correctness never depends on it, [Committer] sees to that.
type Leaser interface {
	// Lease takes or renews the session's lease for owner, for ttl by the store's own clock. It reports whether owner
	// holds it now. [ErrInvalid] unless owner is a valid identifier and ttl is positive.
	Lease(ctx context.Context, key SessionKey, owner string, ttl time.Duration) (bool, error)

	// Release gives up a lease that owner holds; otherwise it does nothing.
	Release(ctx context.Context, key SessionKey, owner string) error
}
