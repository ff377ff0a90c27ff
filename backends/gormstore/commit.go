package gormstore

import (
	"cmp"
	"context"
	"crypto/rand"

	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
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
		if err := tx.Create(row).Error; err != nil {
			return err
		}
		added, err := adopt(tx, key, stream, row.ID, c.Messages)
		if err != nil {
			return err
		}
		if err := insertMessages(tx, key, stream, seqs.MessageSeq, row.ID, added); err != nil {
			return err
		}
		if err := indexMessages(tx, key, c.Observation.Stream, seqs.MessageSeq, added); err != nil {
			return err
		}
		return indexNote(tx, key, backends.KindObservation, c.Observation.Note)
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
	row := newStreamRow(key, c.Observation.Stream, c.To)
	condition, with := atCursor(key, c.Observation.Stream, c.From)
	res := tx.Raw(`UPDATE adkmemory_streams SET message_id = ?, message_time = ?, fingerprint = ?, position = ?
		WHERE `+condition+` RETURNING stream`,
		append([]any{row.MessageID, row.MessageTime, row.Fingerprint, row.Position}, with...)...).Scan(&row.Stream)
	switch {
	case res.Error != nil || res.RowsAffected == 1:
		return row.Stream, res.Error
	case !c.From.IsZero():
		return 0, backends.ErrConflict
	}
	// A cursor that is there already makes this a duplicate, which is the conflict.
	err := addStream(tx, key, row)
	return row.Stream, err
}

// atCursor is the condition that a stream's cursor is the one that a caller started from.
func atCursor(key backends.SessionKey, stream backends.Stream, from backends.Cursor) (string, []any) {
	const ofStream = byOwner + " AND branch = ? AND scope = ?"
	if from.IsZero() {
		return ofStream + " AND message_id = ''", args(key, stream.Branch, stream.Scope)
	}
	return ofStream + " AND message_id = ? AND message_time = ? AND position = ?",
		args(key, stream.Branch, stream.Scope, from.MessageID, from.Time.UnixMicro(), from.Index)
}

// addStream stores a stream under the next number of its session.
func addStream(tx *gorm.DB, key backends.SessionKey, row *streamRow) error {
	err := tx.Raw(`SELECT coalesce(max(stream), 0) + 1 FROM adkmemory_streams WHERE `+byOwner, args(key)...).
		Scan(&row.Stream).Error
	if err != nil {
		return err
	}
	return tx.Create(row).Error
}

// RebaseCursor implements [backends.Committer].
func (s *Store) RebaseCursor(
	ctx context.Context, key backends.SessionKey, epoch string, stream backends.Stream, from backends.Cursor,
) error {
	const op = "adkmemory: rebase cursor"
	if err := s.begin(ctx, op, key.Validate(), backends.ValidateRebase(epoch, stream, from)); err != nil {
		return err
	}
	return s.write(ctx, op, func(tx *gorm.DB) error {
		if _, err := s.touch(tx, key, epoch, 0, 0); err != nil {
			return err
		}
		condition, with := atCursor(key, stream, from)
		res := tx.Exec("UPDATE adkmemory_streams SET position = 0 WHERE "+condition, with...)
		if res.Error == nil && res.RowsAffected == 0 {
			return backends.ErrConflict
		}
		return res.Error
	})
}
