package gormstore

import (
	"cmp"
	"context"
	"crypto/rand"

	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
)

// A statement that inserts messages ends at whichever comes first: databases bound the parameters of a statement and
// its size.
const (
	maxInsertRows  = 500
	maxInsertBytes = 8 << 20
)

// counters are a session's sequences after a write took its numbers from them.
type counters struct {
	NoteSeq    int64
	MessageSeq int64
}

// Commit implements [backends.Committer].
func (s *Store) Commit(ctx context.Context, key backends.SessionKey, c backends.Commit) (backends.Observation, error) {
	const op = "adkmemory: commit"
	if err := s.begin(ctx, op, key.Validate(), c.Validate()); err != nil {
		return backends.Observation{}, err
	}
	c = c.Clean()
	err := s.write(ctx, op, func(tx *gorm.DB) error {
		seqs, err := s.touch(tx, key, c.Epoch, 1, len(c.Messages))
		if err != nil {
			return err
		}
		stream, err := moveCursor(tx, key, c)
		if err != nil {
			return err
		}
		c.Observation.Seq = seqs.NoteSeq
		row := newNoteRow(key, stream, c.Observation.Note)
		row.FirstMessage, row.LastMessage = seqs.MessageSeq-int64(len(c.Messages))+1, seqs.MessageSeq
		if err := tx.Create(row).Error; err != nil {
			return err
		}
		return insertMessages(tx, key, row, c.Messages)
	})
	if err != nil {
		return backends.Observation{}, err
	}
	return c.Observation, nil
}

// touch counts a write of a session that is still in the named epoch, takes numbers from its sequences, and holds the
// session's row until the transaction ends. It creates the row of a session that has none and revives a deleted one.
func (s *Store) touch(tx *gorm.DB, key backends.SessionKey, epoch string, notes, messages int) (counters, error) {
	var seqs counters
	res := tx.Raw(`UPDATE adkmemory_sessions SET version = version + 1, deleted_at = 0, updated_at = `+s.dialect.now+`,
		note_seq = note_seq + ?, message_seq = message_seq + ?
		WHERE `+byOwner+` AND epoch = ? RETURNING note_seq, message_seq`,
		append([]any{notes, messages}, args(key, epoch)...)...).Scan(&seqs)
	if res.Error != nil || res.RowsAffected == 1 {
		return seqs, res.Error
	}
	// A deletion of the user or the app finds the rows that are there, so it must not run beside this insert.
	if s.dialect.lockApp != "" {
		if err := tx.Exec(s.dialect.lockApp, key.App).Error; err != nil {
			return counters{}, err
		}
	}
	now, err := readState(tx, key)
	if err != nil {
		return counters{}, err
	}
	if now.SessionID != "" || now.Epoch != epoch {
		return counters{}, backends.ErrConflict
	}
	res = tx.Exec(`INSERT INTO adkmemory_sessions
		(app, user_id, session_id, epoch, version, deleted_at, updated_at, note_seq, message_seq)
		VALUES (?, ?, ?, ?, ?, 0, `+s.dialect.now+`, ?, ?) ON CONFLICT DO NOTHING`,
		args(key, cmp.Or(epoch, rand.Text()), now.Version+1, notes, messages)...)
	if res.Error == nil && res.RowsAffected == 0 {
		return counters{}, backends.ErrConflict
	}
	return counters{NoteSeq: int64(notes), MessageSeq: int64(messages)}, res.Error
}

// moveCursor moves a stream's cursor if it is where the commit started from, and returns the stream's number.
func moveCursor(tx *gorm.DB, key backends.SessionKey, c backends.Commit) (int64, error) {
	stream, to := c.Observation.Stream, c.To
	row := streamRow{
		Owner: ownerOf(key), Branch: stream.Branch, Scope: stream.Scope,
		MessageID: to.MessageID, MessageTime: to.Time.UnixMicro(), Fingerprint: to.Fingerprint, Position: to.Index,
	}
	if !c.From.IsZero() {
		res := tx.Raw(`UPDATE adkmemory_streams SET message_id = ?, message_time = ?, fingerprint = ?, position = ?
			WHERE `+byOwner+` AND branch = ? AND scope = ? AND message_id = ? AND message_time = ? AND position = ?
			RETURNING stream`,
			append([]any{row.MessageID, row.MessageTime, row.Fingerprint, row.Position},
				args(key, stream.Branch, stream.Scope, c.From.MessageID, c.From.Time.UnixMicro(), c.From.Index)...)...,
		).Scan(&row.Stream)
		if res.Error == nil && res.RowsAffected == 0 {
			return 0, backends.ErrConflict
		}
		return row.Stream, res.Error
	}
	err := tx.Raw(`SELECT coalesce(max(stream), 0) + 1 FROM adkmemory_streams WHERE `+byOwner, args(key)...).
		Scan(&row.Stream).Error
	if err != nil {
		return 0, err
	}
	// A cursor that is there already makes this a duplicate, which is the conflict.
	return row.Stream, tx.Create(&row).Error
}

// insertMessages stores what a note covers, in statements of bounded size.
func insertMessages(tx *gorm.DB, key backends.SessionKey, note *noteRow, messages []backends.Message) error {
	var batch []messageRow
	bytes := 0
	for i, m := range messages {
		size := len(m.Text) + len(m.Content)
		if len(batch) == maxInsertRows || len(batch) > 0 && bytes+size > maxInsertBytes {
			if err := tx.Create(&batch).Error; err != nil {
				return err
			}
			batch, bytes = batch[:0], 0
		}
		batch = append(batch, newMessageRow(key, note.FirstMessage+int64(i), note.Stream, note.ID, m))
		bytes += size
	}
	if len(batch) == 0 {
		return nil
	}
	return tx.Create(&batch).Error
}

// RebaseCursor implements [backends.Committer].
func (s *Store) RebaseCursor(
	ctx context.Context, key backends.SessionKey, epoch string, stream backends.Stream, from backends.Cursor,
) error {
	const op = "adkmemory: rebase cursor"
	if err := s.begin(ctx, op, key.Validate(), stream.Validate(), from.ValidateSet()); err != nil {
		return err
	}
	return s.write(ctx, op, func(tx *gorm.DB) error {
		if _, err := s.touch(tx, key, epoch, 0, 0); err != nil {
			return err
		}
		res := tx.Exec(`UPDATE adkmemory_streams SET position = 0
			WHERE `+byOwner+` AND branch = ? AND scope = ? AND message_id = ? AND message_time = ? AND position = ?`,
			args(key, stream.Branch, stream.Scope, from.MessageID, from.Time.UnixMicro(), from.Index)...)
		if res.Error == nil && res.RowsAffected == 0 {
			return backends.ErrConflict
		}
		return res.Error
	})
}
