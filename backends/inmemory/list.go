package inmemory

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/adkmemory/adkmemory/backends"
)

// ListRecentObservations implements [backends.Lister].
func (s *Store) ListRecentObservations(ctx context.Context, key backends.SessionKey, n int) ([]backends.Observation, error) {
	snap, err := s.Load(ctx, key, backends.Stamp{})
	if err != nil {
		return nil, err
	}
	return newest(snap.Observations, n), nil
}

// ListRecentReflections implements [backends.Lister].
func (s *Store) ListRecentReflections(ctx context.Context, key backends.SessionKey, n int) ([]backends.Reflection, error) {
	snap, err := s.Load(ctx, key, backends.Stamp{})
	if err != nil {
		return nil, err
	}
	return newest(snap.Reflections, n), nil
}

func newest[T any](list []T, n int) []T {
	if n <= 0 || n > len(list) {
		return list
	}
	return list[len(list)-n:]
}

// ListSessions implements [backends.Lister].
func (s *Store) ListSessions(ctx context.Context, q backends.SessionQuery) ([]backends.SessionInfo, error) {
	if err := s.begin(ctx, q.Validate()); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	limit, _ := backends.PageLimit(q.Limit)
	var list []backends.SessionInfo
	for key, state := range s.sessions {
		info := state.info(key)
		if key.App == q.App && (q.User == "" || key.User == q.User) && contains(key, q.Contains) && len(state.notes)+info.Messages > 0 {
			list = append(list, info)
		}
	}
	slices.SortFunc(list, func(a, b backends.SessionInfo) int {
		return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(a.Key.User, b.Key.User), cmp.Compare(a.Key.Session, b.Key.Session))
	})
	list = list[min(q.Offset, len(list)):]
	return list[:min(limit, len(list))], nil
}

func (s *session) info(key backends.SessionKey) backends.SessionInfo {
	info := backends.SessionInfo{Key: key, Messages: len(s.messages), UpdatedAt: backends.CleanTime(s.updatedAt)}
	for _, n := range s.notes {
		switch {
		case !n.Active:
		case n.Generation == 0:
			info.Observations++
		default:
			info.Reflections++
		}
	}
	return info
}

func contains(key backends.SessionKey, part string) bool {
	part = lowerASCII(part)
	return strings.Contains(lowerASCII(key.User), part) || strings.Contains(lowerASCII(key.Session), part)
}

func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// ListMessages implements [backends.Archive].
func (s *Store) ListMessages(ctx context.Context, key backends.SessionKey, q backends.MessageQuery) ([]backends.StoredMessage, error) {
	if err := s.begin(ctx, key.Validate(), q.Validate()); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	limit, _ := backends.PageLimit(q.Limit)
	var list []backends.StoredMessage
	for _, m := range s.state(key).messages {
		if m.Seq > q.AfterSeq && (q.ObservationID == "" || m.ObservationID == q.ObservationID) && len(list) < limit {
			m.Content = slices.Clone(m.Content)
			list = append(list, m)
		}
	}
	return list, nil
}

// ListNotes implements [backends.Archive].
func (s *Store) ListNotes(ctx context.Context, key backends.SessionKey, q backends.NoteQuery) ([]backends.StoredNote, error) {
	if err := s.begin(ctx, key.Validate(), q.Validate()); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	limit, _ := backends.PageLimit(q.Limit)
	var list []backends.StoredNote
	for _, n := range s.state(key).notes {
		if n.Seq > q.AfterSeq && (q.IDs == nil || slices.Contains(q.IDs, n.ID)) && len(list) < limit {
			n.Sources = slices.Clone(n.Sources)
			list = append(list, n)
		}
	}
	return list, nil
}
