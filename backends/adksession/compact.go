package adksession

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/adk/v2/platform"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"
	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
)

// compactTries is how often a compaction looks again after an append or another compaction got in first.
const compactTries = 10

// CompactMessages deletes the session's events 0 to upToIndex, both included, and puts a summary in front of what
// remains, in one transaction. It returns how many events it deleted. With upToIndex 0 it deletes nothing and still
// inserts the summary. A summary from an earlier compaction is replaced and not counted.
//
// It may delete less than asked for: an invocation that lies partly past upToIndex, is among the newest KeepTurns, has a
// call, confirmation or requested input that still waits for its answer, or shares a call and its response with one that
// stays, stays as a whole. Invocations behind one that stays are deleted all the same, so that a call which is never
// answered does not hold up the rest. When nothing may be deleted, nothing changes and it returns 0.
//
// The summary is an event of the user's with the session's earliest time and [SummaryKey] in its custom metadata.
//
// An index may be stale, so expectEventID names the event at upToIndex; [backends.ErrConflict] when another one is
// there, or none. It may be empty only with upToIndex 0. Session objects read before stay good for appends, so a turn
// that runs meanwhile, here or in another process, is not disturbed.
func (s *Service) CompactMessages(
	ctx context.Context, key backends.SessionKey, upToIndex int, expectEventID, summary string,
) (int, error) {
	const op = "compact session"
	switch {
	case upToIndex < 0 || upToIndex > 0 && expectEventID == "" || summary == "":
		return 0, wrap(op, fmt.Errorf("%w: upToIndex is negative, or expectEventID or summary is empty", backends.ErrInvalid))
	case len(summary) > backends.MaxTextBytes:
		return 0, wrap(op, fmt.Errorf("%w: the summary is %d bytes", backends.ErrTooLarge, len(summary)))
	}
	if err := key.Validate(); err != nil {
		return 0, wrap(op, err)
	}
	for range compactTries {
		row, items, err := s.load(ctx, key, filter{})
		if err != nil {
			return 0, wrap(op, err)
		}
		if expectEventID != "" && (upToIndex >= len(items) || items[upToIndex].event.ID != expectEventID) {
			return 0, wrap(op, backends.ErrConflict)
		}
		gone, messages := choose(items, upToIndex, s.keepTurns)
		if messages == 0 && upToIndex > 0 {
			return 0, nil
		}
		event, seq := summaryEvent(ctx, row, items, gone, messages, summary)
		err = s.replace(ctx, key, row.stamp, items, gone, event, seq)
		if errors.Is(err, errMoved) {
			continue
		}
		s.cache.drop(key)
		if err != nil {
			return 0, wrap(op, err)
		}
		return messages, nil
	}
	return 0, wrap(op, backends.ErrConflict)
}

// summaryEvent makes the event, earlier than all that remain, and finds the place before them.
func summaryEvent(
	ctx context.Context, row sessionRow, items []item, gone []bool, messages int, text string,
) (*session.Event, int64) {
	at, seq := platform.Now(ctx).Truncate(time.Microsecond), row.lastSeq
	first := true
	for i, it := range items {
		if gone[i] {
			continue
		}
		if first {
			seq, first = it.seq-1, false
		}
		if earlier := it.event.Timestamp.Add(-time.Microsecond); earlier.Before(at) {
			at = earlier
		}
	}
	id := platform.NewUUID(ctx)
	event := &session.Event{ID: id, InvocationID: id, Author: "user", Timestamp: at}
	event.Content = genai.NewContentFromText(text, genai.RoleUser)
	event.CustomMetadata = map[string]any{SummaryKey: float64(messages)} // as JSON decodes it
	return event, seq
}

// replace deletes and inserts, if the session is still in the state from; otherwise it returns errMoved.
func (s *Service) replace(
	ctx context.Context, key backends.SessionKey, from stamp, items []item, gone []bool, event *session.Event, seq int64,
) error {
	data, err := json.Marshal(event)
	if err != nil {
		return err
	}
	return s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		moved := tx.Exec(`UPDATE adkmemory_adk_sessions SET generation = generation + 1
			WHERE `+byOwner+` AND epoch = ? AND generation = ? AND last_seq = ?`,
			args(key, from.epoch, from.generation, from.lastSeq)...)
		if moved.Error != nil {
			return moved.Error
		}
		if moved.RowsAffected == 0 {
			return errMoved
		}
		for i := 0; i < len(items); i++ { // run by run: what goes is a few stretches, however long
			if !gone[i] {
				continue
			}
			end := i
			for end+1 < len(items) && gone[end+1] {
				end++
			}
			err := tx.Exec("DELETE FROM adkmemory_adk_events WHERE "+byOwner+" AND seq BETWEEN ? AND ?",
				args(key, items[i].seq, items[end].seq)...).Error
			if err != nil {
				return err
			}
			i = end
		}
		return insertEvent(tx, key, seq, event, data)
	}, s.writeTx)
}
