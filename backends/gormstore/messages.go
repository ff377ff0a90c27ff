package gormstore

import (
	"context"
	"errors"
	"slices"

	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
)

// A statement that inserts messages ends at whichever comes first: databases bound the parameters of a statement and
// its size.
const (
	maxInsertRows  = 500
	maxInsertBytes = 8 << 20
)

var _ backends.Appender = (*Store)(nil)

// AppendMessages implements [backends.Appender].
func (s *Store) AppendMessages(
	ctx context.Context, key backends.SessionKey, stream backends.Stream, messages []backends.Message,
) (int, error) {
	const op = "adkmemory: append messages"
	messages, err := backends.CleanMessages(stream, messages)
	if err := s.begin(ctx, op, key.Validate(), err); err != nil {
		return 0, err
	}
	added := messages
	err = s.write(ctx, op, func(tx *gorm.DB) error {
		seqs, err := s.touchAny(tx, key, len(messages))
		if err != nil {
			return err
		}
		row := newStreamRow(key, stream, backends.Cursor{})
		err = tx.Raw(`SELECT stream FROM adkmemory_streams WHERE `+byOwner+` AND branch = ? AND scope = ?`,
			args(key, stream.Branch, stream.Scope)...).Scan(&row.Stream).Error
		if err == nil && row.Stream == 0 {
			err = addStream(tx, key, row)
		}
		if err != nil {
			return err
		}
		var known []string
		err = tx.Raw(`SELECT id FROM adkmemory_messages WHERE `+byOwner+` AND stream = ? AND id IN ?`,
			args(key, row.Stream, messageIDs(messages))...).Scan(&known).Error
		if err != nil {
			return err
		}
		added = without(messages, known)
		if err := insertMessages(tx, key, row.Stream, seqs.MessageSeq, "", added); err != nil {
			return err
		}
		return indexMessages(tx, key, stream, seqs.MessageSeq, added)
	})
	if err != nil {
		return 0, err
	}
	return len(added), nil
}

// touchAny is touch in whatever epoch the session is.
func (s *Store) touchAny(tx *gorm.DB, key backends.SessionKey, messages int) (counters, error) {
	// A write, though it changes nothing: it holds the session's row, and SQLite's lock, before the epoch is read.
	err := tx.Exec(`UPDATE adkmemory_sessions SET version = version WHERE `+byOwner, args(key)...).Error
	if err != nil {
		return counters{}, err
	}
	for again := true; ; again = false {
		now, err := readState(tx, key)
		if err != nil {
			return counters{}, err
		}
		seqs, err := s.touch(tx, key, now.Epoch, 0, messages)
		if again && errors.Is(err, backends.ErrConflict) {
			continue // somebody else wrote the session for the first time meanwhile
		}
		return seqs, err
	}
}

// adopt makes a note cover those of its messages that were appended before, and returns the others.
func adopt(
	tx *gorm.DB, key backends.SessionKey, stream int64, noteID string, messages []backends.Message,
) ([]backends.Message, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	var known []string
	err := tx.Raw(`UPDATE adkmemory_messages SET note_id = ?
		WHERE `+byOwner+` AND stream = ? AND id IN ? AND note_id = '' RETURNING id`,
		append([]any{noteID}, args(key, stream, messageIDs(messages))...)...).Scan(&known).Error
	return without(messages, known), err
}

func messageIDs(messages []backends.Message) []string {
	ids := make([]string, len(messages))
	for i, m := range messages {
		ids[i] = m.ID
	}
	return ids
}

func without(messages []backends.Message, known []string) []backends.Message {
	if len(known) == 0 {
		return messages
	}
	drop := make(map[string]bool, len(known))
	for _, id := range known {
		drop[id] = true
	}
	return slices.DeleteFunc(slices.Clone(messages), func(m backends.Message) bool { return drop[m.ID] })
}

// insertMessages stores messages, in statements of bounded size, under numbers that end at lastSeq.
func insertMessages(
	tx *gorm.DB, key backends.SessionKey, stream, lastSeq int64, noteID string, messages []backends.Message,
) error {
	seq := lastSeq - int64(len(messages))
	for len(messages) > 0 {
		var batch []messageRow
		for bytes := 0; len(batch) < min(maxInsertRows, len(messages)); {
			m := messages[len(batch)]
			if bytes += len(m.Text) + len(m.Content); len(batch) > 0 && bytes > maxInsertBytes {
				break
			}
			seq++
			batch = append(batch, newMessageRow(key, seq, stream, noteID, m))
		}
		if err := tx.Create(&batch).Error; err != nil {
			return err
		}
		messages = messages[len(batch):]
	}
	return nil
}
