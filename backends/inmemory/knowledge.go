package inmemory

import (
	"cmp"
	"context"
	"slices"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/fulltext"
)

func entryRef(kind backends.Kind, key string) backends.Ref { return backends.Ref{Kind: kind, ID: key} }

func cloneEntry(e backends.Entry) backends.Entry {
	e.Tags = slices.Clone(e.Tags)
	return e
}

// versions returns an entry's, oldest first.
func (s *Store) versions(app, user string, ref backends.Ref) []backends.Entry {
	if l := s.libraries[tenant{app, user}]; l != nil {
		return l.entries[ref]
	}
	return nil
}

// SaveEntry implements [backends.KnowledgeStore].
func (s *Store) SaveEntry(ctx context.Context, app, user string, e backends.Entry) (backends.Entry, error) {
	e, err := e.Clean()
	if err := s.begin(ctx, err, backends.ValidateEntryKey(app, user, e.Kind, e.Key)); err != nil {
		return backends.Entry{}, err
	}
	defer s.mu.Unlock()
	ref := entryRef(e.Kind, e.Key)
	versions := s.versions(app, user, ref)
	var old *backends.Entry
	if n := len(versions); n > 0 {
		old = &versions[n-1]
	}
	next, changed, err := e.Next(old, s.now())
	if err != nil || !changed {
		return cloneEntry(next), err
	}
	if old != nil {
		s.forget(app, user, func(r backends.Ref) bool { return r == ref })
	}
	l := s.library(app, user)
	versions = append(slices.Clone(versions), next)
	l.entries[ref] = versions[max(0, len(versions)-backends.MaxEntryVersions):]
	l.index(ctx, []backends.Ref{ref}, []fulltext.Document{fulltext.EntryDocument(next)})
	return cloneEntry(next), nil
}

// GetEntry implements [backends.KnowledgeStore].
func (s *Store) GetEntry(ctx context.Context, app, user string, kind backends.Kind, key string) (backends.Entry, error) {
	versions, err := s.ListVersions(ctx, app, user, kind, key)
	if err != nil {
		return backends.Entry{}, err
	}
	if len(versions) == 0 {
		return backends.Entry{}, backends.ErrNotFound
	}
	return versions[0], nil
}

// ListVersions implements [backends.KnowledgeStore].
func (s *Store) ListVersions(ctx context.Context, app, user string, kind backends.Kind, key string) ([]backends.Entry, error) {
	if err := s.begin(ctx, backends.ValidateEntryKey(app, user, kind, key)); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []backends.Entry
	for _, e := range slices.Backward(s.versions(app, user, entryRef(kind, key))) {
		out = append(out, cloneEntry(e))
	}
	return out, nil
}

// ListEntries implements [backends.KnowledgeStore].
func (s *Store) ListEntries(ctx context.Context, q backends.EntryQuery) ([]backends.Entry, error) {
	q, err := q.Normalize()
	if err := s.begin(ctx, err); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	l := s.libraries[tenant{q.App, q.User}]
	if l == nil {
		return nil, nil
	}
	var out []backends.Entry
	for _, versions := range l.entries {
		if e := versions[len(versions)-1]; q.Matches(e) {
			out = append(out, cloneEntry(e))
		}
	}
	slices.SortFunc(out, func(a, b backends.Entry) int {
		return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key))
	})
	out = out[min(q.Offset, len(out)):]
	return out[:min(q.Limit, len(out))], nil
}

// DeleteEntry implements [backends.KnowledgeStore].
func (s *Store) DeleteEntry(ctx context.Context, app, user string, kind backends.Kind, key string) error {
	if err := s.begin(ctx, backends.ValidateEntryKey(app, user, kind, key)); err != nil {
		return err
	}
	defer s.mu.Unlock()
	ref := entryRef(kind, key)
	if len(s.versions(app, user, ref)) > 0 {
		delete(s.libraries[tenant{app, user}].entries, ref)
		s.forget(app, user, func(r backends.Ref) bool { return r == ref })
	}
	return nil
}

// RecordOutcome implements [backends.KnowledgeStore].
func (s *Store) RecordOutcome(
	ctx context.Context, app, user string, kind backends.Kind, key string, success bool,
) (backends.Entry, error) {
	if err := s.begin(ctx, backends.ValidateEntryKey(app, user, kind, key)); err != nil {
		return backends.Entry{}, err
	}
	defer s.mu.Unlock()
	versions := s.versions(app, user, entryRef(kind, key))
	if len(versions) == 0 {
		return backends.Entry{}, backends.ErrNotFound
	}
	newest := &versions[len(versions)-1]
	*newest = newest.WithOutcome(success, s.now())
	return cloneEntry(*newest), nil
}
