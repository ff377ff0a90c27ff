package backends

import (
	"errors"
	"fmt"
	"time"
)

// Limits of a single value. A store refuses what is past them with [ErrTooLarge].
const (
	MaxTextBytes      = 1 << 20  // one note's text
	MaxMessageBytes   = 16 << 20 // one message's content, encoded
	MaxCommitMessages = 10_000   // messages beside one observation
	MaxListItems      = 1_000    // items of one page
	DefaultListItems  = 100      // items of one page when the caller names no limit
	MaxSources        = 10_000   // notes that one reflection condenses
	TimePrecision     = time.Microsecond
	TombstoneTTL      = time.Hour // how long a deleted session's tombstone is kept from Sweep
)

// Message is one genai.Content of a conversation with its identity. Stores keep the messages that an observation
// covers, so that the exact words stay reachable after the window has moved on.
type Message struct {
	ID           string    // the ADK event's id, or a hash of the content where there is no ADK session
	Index        int64     // position in its stream, from 0, as it was when the message was observed
	InvocationID string    // the ADK invocation that produced it; may be empty
	Author       string    // "user" or an agent's name
	Role         string    // "user" or "model"
	Time         time.Time // of the event; kept to the microsecond
	Text         string    // the content as searchable text
	Content      []byte    // the genai.Content as JSON; nil when the archive keeps text only
	Tokens       int
}

// StoredMessage is a message as a store returns it.
type StoredMessage struct {
	Message
	Key           SessionKey
	Seq           int64 // order of storage within the session, from 1
	Stream        Stream
	ObservationID string // the observation whose commit stored it
}

// Range is the contiguous run of messages of one stream that a note covers, both ends included.
type Range struct {
	Start, End         int64 // message indices
	StartID, EndID     string
	StartTime, EndTime time.Time
}

// Note is what observations and reflections share.
type Note struct {
	ID        string
	Seq       int64  // order of storage within the session, from 1; set by the store
	Stream    Stream // a note never mixes streams
	Text      string
	Tokens    int
	Range     Range
	Writer    string    // who wrote it: a model's name, or "extractive"
	CreatedAt time.Time // kept to the microsecond
}

// Observation is a compressed note over a contiguous range of messages of one stream.
type Observation struct {
	Note
}

// Reflection is a condensed note over observations (generation 1) or over reflections (one more than the highest of
// its sources).
type Reflection struct {
	Note
	Generation int
	Sources    []string // ids of the notes it condensed, oldest first
}

// Cursor names the last observed message of a stream. The zero value means that nothing was observed yet.
type Cursor struct {
	MessageID   string
	Time        time.Time
	Fingerprint string // of the message's author and content; finds it again when ids were replaced
	Index       int64
}

// IsZero reports whether nothing was observed yet.
func (c Cursor) IsZero() bool { return c.MessageID == "" }

// Next is the index that the first un-observed message of the stream has.
func (c Cursor) Next() int64 {
	if c.IsZero() {
		return 0
	}
	return c.Index + 1
}

// Equal compares cursors as a store does: by message id, time to the microsecond, and index.
func (c Cursor) Equal(d Cursor) bool {
	return c.MessageID == d.MessageID && c.Index == d.Index &&
		c.Time.Truncate(TimePrecision).Equal(d.Time.Truncate(TimePrecision))
}

// Stamp identifies one state of a session. Version grows by one with every write; Epoch is random and replaced when the
// session is deleted, so that a stamp taken before a deletion never matches again. The zero value matches no state of
// a session that was ever written or deleted.
type Stamp struct {
	Epoch   string
	Version int64
}

// Snapshot is one consistent view of a session's active memory. A caller must not modify it: it may be shared.
type Snapshot struct {
	Stamp
	Cursors      map[Stream]Cursor
	Observations []Observation // active ones, by Seq
	Reflections  []Reflection  // active ones, by Seq
}

// Commit asks to store one observation and to move its stream's cursor.
type Commit struct {
	Epoch       string      // as loaded; "" for a session that had no state
	From        Cursor      // as loaded; zero for a stream that had none
	To          Cursor      // becomes the stream's cursor
	Observation Observation // its Stream is the cursor's stream
	Messages    []Message   // what it covers, in order; nil keeps no archive of them
}

// Validate reports every fault of a commit. The error wraps [ErrInvalid] or [ErrTooLarge].
func (c Commit) Validate() error {
	errs := []error{
		validateNote(c.Observation.Note), validID("epoch", c.Epoch, false),
		validID("From cursor's message id", c.From.MessageID, false),
	}
	if c.To.IsZero() {
		errs = append(errs, fmt.Errorf("%w: the commit's To cursor is empty", ErrInvalid))
	}
	if len(c.Messages) > MaxCommitMessages {
		return errors.Join(append(errs, fmt.Errorf("%w: %d messages in one commit, at most %d are allowed",
			ErrTooLarge, len(c.Messages), MaxCommitMessages))...)
	}
	errs = append(errs, validID("cursor's message id", c.To.MessageID, false), validText("cursor's fingerprint", c.To.Fingerprint))
	ids := make(map[string]bool, len(c.Messages))
	for i, m := range c.Messages {
		if ids[m.ID] {
			errs = append(errs, fmt.Errorf("%w: message %d has the id of an earlier one", ErrInvalid, i))
		}
		ids[m.ID] = true
		errs = append(errs, validID("message id", m.ID, true), validText("message's invocation id", m.InvocationID),
			validText("message's author", m.Author), validText("message's role", m.Role))
		if n := len(m.Text) + len(m.Content); n > MaxMessageBytes {
			errs = append(errs, fmt.Errorf("%w: message %d is %d bytes, at most %d are allowed", ErrTooLarge, i, n, MaxMessageBytes))
		}
	}
	return errors.Join(errs...)
}

// Condense asks to replace active notes by one reflection.
type Condense struct {
	Epoch      string
	Reflection Reflection // its Sources name the notes to condense: all observations, or all reflections
	Discard    bool       // drop the sources instead of archiving them
}

// Validate reports every fault of a request to condense. The error wraps [ErrInvalid] or [ErrTooLarge].
func (c Condense) Validate() error {
	errs := []error{validateNote(c.Reflection.Note), validID("epoch", c.Epoch, false)}
	if len(c.Reflection.Sources) == 0 {
		errs = append(errs, fmt.Errorf("%w: the reflection names no sources", ErrInvalid))
	}
	if n := len(c.Reflection.Sources); n > MaxSources {
		return fmt.Errorf("%w: the reflection names %d sources, at most %d are allowed", ErrTooLarge, n, MaxSources)
	}
	ids := make(map[string]bool, len(c.Reflection.Sources))
	for i, id := range c.Reflection.Sources {
		if ids[id] {
			errs = append(errs, fmt.Errorf("%w: source %d is named twice", ErrInvalid, i))
		}
		ids[id] = true
		errs = append(errs, validID("source", id, true))
	}
	if c.Reflection.Generation < 1 {
		errs = append(errs, fmt.Errorf("%w: the reflection's generation is %d, the first is 1", ErrInvalid, c.Reflection.Generation))
	}
	return errors.Join(errs...)
}

func validateNote(n Note) error {
	errs := []error{validID("note id", n.ID, true), n.Stream.Validate(), validText("note's writer", n.Writer),
		validText("range's first id", n.Range.StartID), validText("range's last id", n.Range.EndID)}
	if n.Text == "" {
		errs = append(errs, fmt.Errorf("%w: the note is empty", ErrInvalid))
	}
	if len(n.Text) > MaxTextBytes {
		errs = append(errs, fmt.Errorf("%w: the note is %d bytes, at most %d are allowed", ErrTooLarge, len(n.Text), MaxTextBytes))
	}
	return errors.Join(errs...)
}
