package encrypted

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/adkmemory/adkmemory/backends"
)

// Config says how to encrypt.
type Config struct {
	// Keys provides the keys. Required.
	Keys Keys

	// AcceptPlaintext also reads rows that were written before encryption was switched on. Whoever can write to the
	// database can then plant rows of their own: leave it off otherwise. Default false.
	AcceptPlaintext bool
}

// Store is a [backends.Store] whose text is encrypted in the store beneath. It has that store's guarantees.
type Store struct {
	backends.Store // of the methods that see no text
	keys           Keys
	plain          bool
}

var (
	_ backends.Store    = (*Store)(nil)
	_ backends.Searcher = (*Store)(nil)
	_ backends.Appender = (*Store)(nil)
)

// New wraps a store. Closing the result closes it.
func New(store backends.Store, cfg Config) (*Store, error) {
	if store == nil || cfg.Keys == nil {
		return nil, errors.New("adkmemory: encrypted: a store and Config.Keys are required")
	}
	return &Store{Store: store, keys: cfg.Keys, plain: cfg.AcceptPlaintext}, nil
}

// Load implements [backends.Loader].
func (s *Store) Load(ctx context.Context, key backends.SessionKey, have backends.Stamp) (*backends.Snapshot, error) {
	sealed, err := s.Store.Load(ctx, key, have)
	if err != nil || sealed == nil {
		return nil, err
	}
	v := s.vault(key)
	snap := *sealed // it may be shared: what is opened goes into copies
	snap.Cursors = maps.Clone(sealed.Cursors)
	for stream, c := range snap.Cursors {
		if err := v.openCursor(ctx, &c); err != nil {
			return nil, err
		}
		snap.Cursors[stream] = c
	}
	if snap.Observations, err = v.observations(ctx, sealed.Observations); err != nil {
		return nil, err
	}
	snap.Reflections, err = v.reflections(ctx, sealed.Reflections)
	if err != nil {
		return nil, err
	}
	return &snap, nil
}

func (v *vault) observations(ctx context.Context, sealed []backends.Observation) ([]backends.Observation, error) {
	out := slices.Clone(sealed)
	for i := range out {
		if err := v.openNote(ctx, &out[i].Note); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (v *vault) reflections(ctx context.Context, sealed []backends.Reflection) ([]backends.Reflection, error) {
	out := slices.Clone(sealed)
	for i := range out {
		if err := v.openNote(ctx, &out[i].Note); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Commit implements [backends.Committer].
func (s *Store) Commit(ctx context.Context, key backends.SessionKey, c backends.Commit) (backends.Observation, error) {
	if err := errors.Join(key.Validate(), c.Validate()); err != nil {
		return backends.Observation{}, err
	}
	c = c.Clean() // a copy; the store beneath sees no text that it could clean
	v := s.vault(key)
	text := c.Observation.Text
	sealed, err := v.sealText(ctx, kindNote, c.Observation.ID, text)
	if err != nil {
		return backends.Observation{}, err
	}
	c.Observation.Text, c.From.Fingerprint = sealed, ""
	if err := v.sealCursor(ctx, &c.To); err != nil {
		return backends.Observation{}, err
	}
	for i := range c.Messages {
		if err := v.sealMessage(ctx, &c.Messages[i]); err != nil {
			return backends.Observation{}, err
		}
	}
	o, err := s.Store.Commit(ctx, key, c)
	if err != nil {
		return backends.Observation{}, err
	}
	o.Text = text
	return o, nil
}

// Condense implements [backends.Committer].
func (s *Store) Condense(ctx context.Context, key backends.SessionKey, c backends.Condense) (backends.Reflection, error) {
	if err := errors.Join(key.Validate(), c.Validate()); err != nil {
		return backends.Reflection{}, err
	}
	c = c.Clean()
	text := c.Reflection.Text
	sealed, err := s.vault(key).sealText(ctx, kindNote, c.Reflection.ID, text)
	if err != nil {
		return backends.Reflection{}, err
	}
	c.Reflection.Text = sealed
	r, err := s.Store.Condense(ctx, key, c)
	if err != nil {
		return backends.Reflection{}, err
	}
	r.Text = text
	return r, nil
}

// RebaseCursor implements [backends.Committer].
func (s *Store) RebaseCursor(ctx context.Context, key backends.SessionKey, epoch string, stream backends.Stream, from backends.Cursor) error {
	from.Fingerprint = ""
	return s.Store.RebaseCursor(ctx, key, epoch, stream, from)
}

// ListRecentObservations implements [backends.Lister].
func (s *Store) ListRecentObservations(ctx context.Context, key backends.SessionKey, n int) ([]backends.Observation, error) {
	sealed, err := s.Store.ListRecentObservations(ctx, key, n)
	if err != nil {
		return nil, err
	}
	return s.vault(key).observations(ctx, sealed)
}

// ListRecentReflections implements [backends.Lister].
func (s *Store) ListRecentReflections(ctx context.Context, key backends.SessionKey, n int) ([]backends.Reflection, error) {
	sealed, err := s.Store.ListRecentReflections(ctx, key, n)
	if err != nil {
		return nil, err
	}
	return s.vault(key).reflections(ctx, sealed)
}

// ListMessages implements [backends.Archive].
func (s *Store) ListMessages(ctx context.Context, key backends.SessionKey, q backends.MessageQuery) ([]backends.StoredMessage, error) {
	sealed, err := s.Store.ListMessages(ctx, key, q)
	if err != nil {
		return nil, err
	}
	v, out := s.vault(key), slices.Clone(sealed)
	for i := range out {
		if err := v.openMessage(ctx, &out[i].Message); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ListNotes implements [backends.Archive].
func (s *Store) ListNotes(ctx context.Context, key backends.SessionKey, q backends.NoteQuery) ([]backends.StoredNote, error) {
	sealed, err := s.Store.ListNotes(ctx, key, q)
	if err != nil {
		return nil, err
	}
	v, out := s.vault(key), slices.Clone(sealed)
	for i := range out {
		if err := v.openNote(ctx, &out[i].Note); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// AppendMessages implements [backends.Appender], when the store beneath does; otherwise it returns
// [errors.ErrUnsupported].
func (s *Store) AppendMessages(ctx context.Context, key backends.SessionKey, stream backends.Stream, messages []backends.Message) (int, error) {
	inner, ok := s.Store.(backends.Appender)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	clean, err := backends.CleanMessages(stream, messages)
	if err = errors.Join(key.Validate(), err); err != nil {
		return 0, err
	}
	v := s.vault(key)
	for i := range clean {
		if err := v.sealMessage(ctx, &clean[i]); err != nil {
			return 0, err
		}
	}
	return inner.AppendMessages(ctx, key, stream, clean)
}

// Search implements [backends.Searcher]: it returns [ErrSearchOff].
func (s *Store) Search(context.Context, backends.SearchQuery) ([]backends.Found, error) {
	return nil, ErrSearchOff
}

// Lookup implements [backends.Searcher] for messages and notes; entries are left out. It needs a store beneath that
// searches, else it returns [ErrSearchOff].
func (s *Store) Lookup(ctx context.Context, app, user string, refs []backends.Ref) ([]backends.Found, error) {
	inner, ok := s.Store.(backends.Searcher)
	if !ok {
		return nil, ErrSearchOff
	}
	refs = slices.DeleteFunc(slices.Clone(refs), func(r backends.Ref) bool { return slices.Contains(backends.EntryKinds(), r.Kind) })
	sealed, err := inner.Lookup(ctx, app, user, refs)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(sealed)
	vaults := make(map[string]*vault)
	for i, f := range out {
		v := vaults[f.Session]
		if v == nil {
			v = s.vault(backends.SessionKey{App: app, User: user, Session: f.Session})
			vaults[f.Session] = v
		}
		switch {
		case f.Message != nil:
			m := *f.Message
			if err := v.openMessage(ctx, &m.Message); err != nil {
				return nil, err
			}
			out[i].Message = &m
		case f.Note != nil:
			n := *f.Note
			if err := v.openNote(ctx, &n.Note); err != nil {
				return nil, err
			}
			out[i].Note = &n
		}
	}
	return out, nil
}
