package gormstore

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
)

// Condense implements [backends.Committer].
func (s *Store) Condense(ctx context.Context, key backends.SessionKey, c backends.Condense) (backends.Reflection, error) {
	const op = "adkmemory: condense"
	if err := s.begin(ctx, op, key.Validate(), c.Validate()); err != nil {
		return backends.Reflection{}, err
	}
	c = c.Clean()
	err := s.write(ctx, op, func(tx *gorm.DB) error {
		seqs, err := s.touch(tx, key, c.Epoch, 1, 0)
		if err != nil {
			return err
		}
		stream, err := checkSources(tx, key, c.Reflection)
		if err != nil {
			return err
		}
		if err := retire(tx, key, c); err != nil {
			return err
		}
		c.Reflection.Seq = seqs.NoteSeq
		row := newNoteRow(key, stream, c.Reflection.Note)
		row.Generation, row.Sources = c.Reflection.Generation, c.Reflection.Sources
		if err := tx.Create(row).Error; err != nil {
			return err
		}
		return indexNote(tx, key, backends.KindReflection, c.Reflection.Note)
	})
	if err != nil {
		return backends.Reflection{}, err
	}
	return c.Reflection, nil
}

// checkSources checks that a reflection's sources are active, of its stream and of one kind, and that its generation
// follows theirs. It returns the number of the stream.
func checkSources(tx *gorm.DB, key backends.SessionKey, r backends.Reflection) (int64, error) {
	var sources []struct {
		Branch, Scope string
		Stream        int64
		Generation    int
	}
	err := tx.Raw(`SELECT s.branch, s.scope, n.stream, n.generation FROM adkmemory_notes n
		JOIN adkmemory_streams s USING (app, user_id, session_id, stream)
		WHERE `+byOwner+` AND n.active AND n.id IN ?`, args(key, r.Sources)...).Scan(&sources).Error
	if err != nil {
		return 0, err
	}
	if len(sources) != len(r.Sources) {
		return 0, backends.ErrConflict
	}
	generation, observations := 0, 0
	for _, source := range sources {
		if source.Branch != r.Stream.Branch || source.Scope != r.Stream.Scope {
			return 0, fmt.Errorf("%w: a source is of another stream", backends.ErrInvalid)
		}
		generation = max(generation, source.Generation)
		if source.Generation == 0 {
			observations++
		}
	}
	if observations != 0 && observations != len(sources) {
		return 0, fmt.Errorf("%w: the sources are observations and reflections", backends.ErrInvalid)
	}
	if r.Generation != generation+1 {
		return 0, fmt.Errorf("%w: generation %d over generation %d", backends.ErrInvalid, r.Generation, generation)
	}
	return sources[0].Stream, nil
}

// retire takes the sources out of the active set. Their session's row is locked, so they are what was checked.
func retire(tx *gorm.DB, key backends.SessionKey, c backends.Condense) error {
	sources := c.Reflection.Sources
	if c.Discard {
		if err := forgetNotes(tx, key, "id IN ?", sources); err != nil {
			return err
		}
		return tx.Exec(`DELETE FROM adkmemory_notes WHERE `+byOwner+` AND id IN ?`, args(key, sources)...).Error
	}
	return tx.Exec(`UPDATE adkmemory_notes SET active = false, parent_id = ? WHERE `+byOwner+` AND id IN ?`,
		append([]any{c.Reflection.ID}, args(key, sources)...)...).Error
}
