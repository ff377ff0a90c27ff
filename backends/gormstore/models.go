package gormstore

import (
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

// owner is what every row leads with.
type owner struct {
	App       string
	UserID    string
	SessionID string
}

func ownerOf(key backends.SessionKey) owner {
	return owner{App: key.App, UserID: key.User, SessionID: key.Session}
}

func (o owner) key() backends.SessionKey {
	return backends.SessionKey{App: o.App, User: o.UserID, Session: o.SessionID}
}

// byOwner is the condition that every query of one session has; its arguments are args(key).
const byOwner = "app = ? AND user_id = ? AND session_id = ?"

func args(key backends.SessionKey, more ...any) []any {
	return append([]any{key.App, key.User, key.Session}, more...)
}

type streamRow struct {
	Owner       owner `gorm:"embedded"`
	Branch      string
	Scope       string
	Stream      int64
	MessageID   string
	MessageTime int64
	Fingerprint string
	Position    int64
}

func (streamRow) TableName() string { return "adkmemory_streams" }

func newStreamRow(key backends.SessionKey, stream backends.Stream, c backends.Cursor) *streamRow {
	return &streamRow{
		Owner: ownerOf(key), Branch: stream.Branch, Scope: stream.Scope,
		MessageID: c.MessageID, MessageTime: c.Time.UnixMicro(), Fingerprint: c.Fingerprint, Position: c.Index,
	}
}

func (r streamRow) stream() backends.Stream {
	return backends.Stream{Branch: r.Branch, Scope: r.Scope}
}

func (r streamRow) cursor() backends.Cursor {
	return backends.Cursor{
		MessageID: r.MessageID, Time: fromMicros(r.MessageTime), Fingerprint: r.Fingerprint, Index: r.Position,
	}
}

type noteRow struct {
	Owner         owner `gorm:"embedded"`
	Seq           int64
	ID            string
	Stream        int64
	Generation    int
	Active        bool
	ParentID      string
	Sources       []string `gorm:"serializer:json"`
	Text          string
	Tokens        int
	Writer        string
	NotedAt       int64
	StartPosition int64
	StartID       string
	StartTime     int64
	EndPosition   int64
	EndID         string
	EndTime       int64
}

func (noteRow) TableName() string { return "adkmemory_notes" }

func newNoteRow(key backends.SessionKey, stream int64, n backends.Note) *noteRow {
	return &noteRow{
		Owner: ownerOf(key), Seq: n.Seq, ID: n.ID, Stream: stream, Active: true,
		Text: n.Text, Tokens: n.Tokens, Writer: n.Writer, NotedAt: n.CreatedAt.UnixMicro(),
		StartPosition: n.Range.Start, StartID: n.Range.StartID, StartTime: n.Range.StartTime.UnixMicro(),
		EndPosition: n.Range.End, EndID: n.Range.EndID, EndTime: n.Range.EndTime.UnixMicro(),
	}
}

func (r noteRow) note(stream backends.Stream) backends.Note {
	return backends.Note{
		ID: r.ID, Seq: r.Seq, Stream: stream, Text: r.Text, Tokens: r.Tokens, Writer: r.Writer,
		CreatedAt: fromMicros(r.NotedAt),
		Range: backends.Range{
			Start: r.StartPosition, StartID: r.StartID, StartTime: fromMicros(r.StartTime),
			End: r.EndPosition, EndID: r.EndID, EndTime: fromMicros(r.EndTime),
		},
	}
}

type messageRow struct {
	Owner        owner `gorm:"embedded"`
	Seq          int64
	ID           string
	Stream       int64
	NoteID       string
	Position     int64
	InvocationID string
	Author       string
	Role         string
	SentAt       int64
	Text         string
	Content      []byte
	Tokens       int
}

func (messageRow) TableName() string { return "adkmemory_messages" }

func newMessageRow(key backends.SessionKey, seq, stream int64, noteID string, m backends.Message) messageRow {
	return messageRow{
		Owner: ownerOf(key), Seq: seq, ID: m.ID, Stream: stream, NoteID: noteID, Position: m.Index,
		InvocationID: m.InvocationID, Author: m.Author, Role: m.Role, SentAt: m.Time.UnixMicro(),
		Text: m.Text, Content: m.Content, Tokens: m.Tokens,
	}
}

func (r messageRow) message(stream backends.Stream) backends.StoredMessage {
	return backends.StoredMessage{
		Message: backends.Message{
			ID: r.ID, Index: r.Position, InvocationID: r.InvocationID, Author: r.Author, Role: r.Role,
			Time: fromMicros(r.SentAt), Text: r.Text, Content: r.Content, Tokens: r.Tokens,
		},
		Key: r.Owner.key(), Seq: r.Seq, Stream: stream, ObservationID: r.NoteID,
	}
}

func fromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }
