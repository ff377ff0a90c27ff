package inmemory

import (
	"context"
	"slices"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/fulltext"
)

var (
	_ backends.Searcher       = (*Store)(nil)
	_ backends.Appender       = (*Store)(nil)
	_ backends.KnowledgeStore = (*Store)(nil)
	_ backends.VectorStore    = (*Store)(nil)
	_ backends.GraphStore     = (*Store)(nil)
)

type tenant struct{ app, user string }

// library is what is kept about a user across sessions, and the index over all of the user's documents.
type library struct {
	areas   map[backends.Kind]*area
	entries map[backends.Ref][]backends.Entry // versions, oldest first
	vectors map[vectorKey][]float32
	triples []backends.Triple // oldest first
}

// area is the index over the documents of one kind.
type area struct {
	blocks fulltext.Memory
	refs   map[uint32]backends.Ref
	docs   map[backends.Ref]uint32
}

// library returns the user's, which it creates if need be.
func (s *Store) library(app, user string) *library {
	t := tenant{app, user}
	if s.libraries == nil {
		s.libraries = map[tenant]*library{}
	}
	if s.libraries[t] == nil {
		s.libraries[t] = &library{
			areas:   map[backends.Kind]*area{},
			entries: map[backends.Ref][]backends.Entry{},
			vectors: map[vectorKey][]float32{},
		}
	}
	return s.libraries[t]
}

// index adds documents of one kind. Memory has no errors to return.
func (l *library) index(ctx context.Context, refs []backends.Ref, docs []fulltext.Document) {
	if len(docs) == 0 {
		return
	}
	a := l.areas[refs[0].Kind]
	if a == nil {
		a = &area{refs: map[uint32]backends.Ref{}, docs: map[backends.Ref]uint32{}}
		l.areas[refs[0].Kind] = a
	}
	first, _ := fulltext.Add(ctx, &a.blocks, docs)
	for i, ref := range refs {
		a.refs[first+uint32(i)] = ref
		a.docs[ref] = first + uint32(i)
	}
}

func (l *library) indexMessages(ctx context.Context, session string, stream backends.Stream, messages []backends.Message) {
	refs := make([]backends.Ref, len(messages))
	docs := make([]fulltext.Document, len(messages))
	for i, m := range messages {
		refs[i] = backends.Ref{Kind: backends.KindMessage, Session: session, ID: m.ID}
		docs[i] = fulltext.MessageDocument(session, stream, m)
	}
	l.index(ctx, refs, docs)
}

func (l *library) indexNote(ctx context.Context, session string, n backends.StoredNote) {
	l.index(ctx, []backends.Ref{noteRef(session, n)}, []fulltext.Document{fulltext.NoteDocument(session, n.Note)})
}

func noteRef(session string, n backends.StoredNote) backends.Ref {
	kind := backends.KindObservation
	if n.Generation > 0 {
		kind = backends.KindReflection
	}
	return backends.Ref{Kind: kind, Session: session, ID: n.ID}
}

// forget removes the documents that match from the index, with their vectors and the triples drawn from them.
func (s *Store) forget(app, user string, match func(backends.Ref) bool) {
	l := s.libraries[tenant{app, user}]
	if l == nil {
		return
	}
	for _, a := range l.areas {
		var docs []uint32
		for ref, doc := range a.docs {
			if match(ref) {
				docs = append(docs, doc)
				delete(a.docs, ref)
				delete(a.refs, doc)
			}
		}
		_ = fulltext.Remove(context.Background(), &a.blocks, docs, nil)
	}
	for k := range l.vectors {
		if match(k.Ref) {
			delete(l.vectors, k)
		}
	}
	l.triples = slices.DeleteFunc(l.triples, func(t backends.Triple) bool { return match(t.Source) })
}

// Search implements [backends.Searcher].
func (s *Store) Search(ctx context.Context, q backends.SearchQuery) ([]backends.Found, error) {
	q, err := q.Normalize()
	if err := s.begin(ctx, err); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	l := s.libraries[tenant{q.App, q.User}]
	if l == nil {
		return nil, nil
	}
	var found []backends.Found
	for _, kind := range q.Kinds {
		a := l.areas[kind]
		if a == nil || q.Session != "" && !kind.OfSession() {
			continue
		}
		results, err := fulltext.Search(ctx, &a.blocks, fulltext.QueryFor(q))
		if err != nil {
			return nil, err
		}
		for _, r := range results {
			if f, ok := s.resolve(q.App, q.User, a.refs[r.Doc]); ok && q.Matches(f) {
				f.Score = r.Score
				found = append(found, f)
			}
		}
	}
	return fulltext.Best(found, q.Limit), nil
}

// Lookup implements [backends.Searcher].
func (s *Store) Lookup(ctx context.Context, app, user string, refs []backends.Ref) ([]backends.Found, error) {
	if err := s.begin(ctx, backends.ValidateRefs(app, user, refs)); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var found []backends.Found
	for _, ref := range refs {
		if f, ok := s.resolve(app, user, ref); ok {
			found = append(found, f)
		}
	}
	return found, nil
}

// resolve returns a copy of a document.
func (s *Store) resolve(app, user string, ref backends.Ref) (backends.Found, bool) {
	found := backends.Found{Ref: ref}
	if !ref.Kind.OfSession() {
		versions := s.versions(app, user, ref)
		if len(versions) == 0 {
			return found, false
		}
		e := cloneEntry(versions[len(versions)-1])
		found.Entry = &e
		return found, true
	}
	state := s.sessions[backends.SessionKey{App: app, User: user, Session: ref.Session}]
	if state == nil {
		return found, false
	}
	if ref.Kind == backends.KindMessage {
		i := slices.IndexFunc(state.messages, func(m backends.StoredMessage) bool { return m.ID == ref.ID })
		if i < 0 {
			return found, false
		}
		m := state.messages[i]
		m.Content = slices.Clone(m.Content)
		found.Message = &m
		return found, true
	}
	n := state.note(ref.ID)
	if n == nil || noteRef(ref.Session, *n) != ref {
		return found, false
	}
	clone := *n
	clone.Sources = slices.Clone(n.Sources)
	found.Note = &clone
	return found, true
}

// AppendMessages implements [backends.Appender].
func (s *Store) AppendMessages(
	ctx context.Context, key backends.SessionKey, stream backends.Stream, messages []backends.Message,
) (int, error) {
	messages, err := backends.CleanMessages(stream, messages)
	if err := s.begin(ctx, key.Validate(), err); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	state, err := s.writable(key, s.state(key).Epoch)
	if err != nil {
		return 0, err
	}
	known := map[string]bool{}
	for _, old := range state.messages {
		if old.Stream == stream {
			known[old.ID] = true
		}
	}
	var added []backends.Message
	for _, m := range messages {
		if !known[m.ID] {
			state.addMessage(key, stream, m, "")
			added = append(added, m)
		}
	}
	if len(added) > 0 {
		s.library(key.App, key.User).indexMessages(ctx, key.Session, stream, added)
		s.touch(key, state)
	}
	return len(added), nil
}

// addMessage appends to the archive.
func (s *session) addMessage(key backends.SessionKey, stream backends.Stream, m backends.Message, observation string) {
	s.messages = append(s.messages, backends.StoredMessage{
		Message: m, Key: key, Seq: int64(len(s.messages) + 1), Stream: stream, ObservationID: observation,
	})
}
