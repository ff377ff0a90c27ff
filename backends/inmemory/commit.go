package inmemory

import (
	"context"
	"fmt"
	"slices"

	"github.com/adkmemory/adkmemory/backends"
)

// Commit implements [backends.Committer].
func (s *Store) Commit(ctx context.Context, key backends.SessionKey, c backends.Commit) (backends.Observation, error) {
	if err := s.begin(ctx, key.Validate(), c.Validate()); err != nil {
		return backends.Observation{}, err
	}
	defer s.mu.Unlock()
	c = c.Clean()
	state, err := s.writable(key, c.Epoch)
	if err != nil {
		return backends.Observation{}, err
	}
	stream := c.Observation.Stream
	if !sameCursor(state.cursors[stream], c.From) || state.note(c.Observation.ID) != nil {
		return backends.Observation{}, backends.ErrConflict
	}
	stored := make(map[string]int)
	for i, m := range state.messages {
		if m.Stream == stream {
			stored[m.ID] = i
		}
	}
	for _, m := range c.Messages {
		if i, known := stored[m.ID]; known && state.messages[i].ObservationID != "" {
			return backends.Observation{}, backends.ErrConflict
		}
	}
	// Nothing below fails: the write is all or nothing.
	note := state.add(backends.StoredNote{Note: c.Observation.Note, Active: true})
	var added []backends.Message
	for _, m := range c.Messages {
		if i, known := stored[m.ID]; known {
			state.messages[i].ObservationID = note.ID // AppendMessages was here first
			continue
		}
		state.addMessage(key, stream, m, note.ID)
		added = append(added, m)
	}
	state.cursors[stream] = c.To
	s.library(key.App, key.User).indexMessages(ctx, key.Session, stream, added)
	s.library(key.App, key.User).indexNote(ctx, key.Session, note)
	s.touch(key, state)
	return backends.Observation{Note: note.Note}, nil
}

// Condense implements [backends.Committer].
func (s *Store) Condense(ctx context.Context, key backends.SessionKey, c backends.Condense) (backends.Reflection, error) {
	if err := s.begin(ctx, key.Validate(), c.Validate()); err != nil {
		return backends.Reflection{}, err
	}
	defer s.mu.Unlock()
	c = c.Clean()
	state, err := s.writable(key, c.Epoch)
	if err != nil {
		return backends.Reflection{}, err
	}
	if state.note(c.Reflection.ID) != nil {
		return backends.Reflection{}, backends.ErrConflict
	}
	generation, observations := 0, 0
	for _, id := range c.Reflection.Sources {
		source := state.note(id)
		if source == nil || !source.Active {
			return backends.Reflection{}, backends.ErrConflict
		}
		if source.Stream != c.Reflection.Stream {
			return backends.Reflection{}, fmt.Errorf("%w: a source is of another stream", backends.ErrInvalid)
		}
		generation = max(generation, source.Generation)
		if source.Generation == 0 {
			observations++
		}
	}
	if observations != 0 && observations != len(c.Reflection.Sources) {
		return backends.Reflection{}, fmt.Errorf("%w: the sources are observations and reflections", backends.ErrInvalid)
	}
	if c.Reflection.Generation != generation+1 {
		return backends.Reflection{}, fmt.Errorf("%w: generation %d over generation %d",
			backends.ErrInvalid, c.Reflection.Generation, generation)
	}
	if c.Discard {
		s.forget(key.App, key.User, func(r backends.Ref) bool {
			return r.Session == key.Session && r.Kind != backends.KindMessage && slices.Contains(c.Reflection.Sources, r.ID)
		})
		state.notes = slices.DeleteFunc(state.notes, func(n backends.StoredNote) bool {
			return slices.Contains(c.Reflection.Sources, n.ID)
		})
	} else {
		for _, id := range c.Reflection.Sources {
			source := state.note(id)
			source.Active, source.ParentID = false, c.Reflection.ID
		}
	}
	note := state.add(backends.StoredNote{
		Note: c.Reflection.Note, Generation: c.Reflection.Generation, Sources: c.Reflection.Sources, Active: true,
	})
	s.library(key.App, key.User).indexNote(ctx, key.Session, note)
	s.touch(key, state)
	return reflection(note), nil
}

// RebaseCursor implements [backends.Committer].
func (s *Store) RebaseCursor(
	ctx context.Context, key backends.SessionKey, epoch string, stream backends.Stream, from backends.Cursor,
) error {
	if err := s.begin(ctx, key.Validate(), backends.ValidateRebase(epoch, stream, from)); err != nil {
		return err
	}
	defer s.mu.Unlock()
	state, err := s.writable(key, epoch)
	if err != nil {
		return err
	}
	cursor := state.cursors[stream]
	if !sameCursor(cursor, from) {
		return backends.ErrConflict
	}
	cursor.Index = 0
	state.cursors[stream] = cursor
	s.touch(key, state)
	return nil
}

// sameCursor compares a stored cursor with the one that a caller started from.
func sameCursor(stored, from backends.Cursor) bool {
	return stored.Equal(from) || stored.IsZero() && from.IsZero()
}

// note returns the session's note, or nil.
func (s *session) note(id string) *backends.StoredNote {
	for i := range s.notes {
		if s.notes[i].ID == id {
			return &s.notes[i]
		}
	}
	return nil
}

// add appends a note and gives it the next Seq.
func (s *session) add(n backends.StoredNote) backends.StoredNote {
	s.noteSeq++
	n.Seq = s.noteSeq
	s.notes = append(s.notes, n)
	return n
}
