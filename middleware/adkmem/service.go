// Package adkmem is ADK's memory service over an adkmemory store: the words of past sessions, found by ADK's own tools.
//
// Give [New]'s result to the runner as its MemoryService and call AddSessionToMemory when a session ends, or as often as
// you like. Sessions that the middleware archives are found without that, as far as they were observed.
package adkmem

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/memory"
	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/window"
)

// DefaultMaxResults bounds a search when the configuration does not.
const DefaultMaxResults = 10

// batch is how many messages are stored in one transaction.
const batch = 200

// Store is what the service asks of a backend; every backend of this module has it.
type Store interface {
	backends.Searcher
	backends.Appender
}

// Config configures a [Service]. The zero value takes every default.
type Config struct {
	// MaxResults bounds the entries of a search. Default [DefaultMaxResults], at most [backends.MaxListItems].
	MaxResults int

	// Redactor runs over every message before it is stored. Give it the middleware's. Default: none.
	Redactor middleware.Redactor

	// Search finds messages. Default: the store; a hybrid or graph searcher of the retriever will do as well.
	Search backends.Searcher
}

// Service implements [memory.Service]. It is safe for concurrent use.
type Service struct {
	store  Store
	cfg    Config
	search backends.Searcher
}

var _ memory.Service = (*Service)(nil)

// New returns a service over a store. The error wraps [backends.ErrInvalid].
func New(store Store, cfg Config) (*Service, error) {
	if store == nil {
		return nil, fmt.Errorf("%w: the store is nil", backends.ErrInvalid)
	}
	if cfg.MaxResults < 0 || cfg.MaxResults > backends.MaxListItems {
		return nil, fmt.Errorf("%w: MaxResults is %d; it must be between 1 and %d, or left out for the default",
			backends.ErrInvalid, cfg.MaxResults, backends.MaxListItems)
	}
	cfg.MaxResults = cmp.Or(cfg.MaxResults, DefaultMaxResults)
	s := &Service{store: store, cfg: cfg, search: cfg.Search}
	if s.search == nil {
		s.search = store
	}
	return s, nil
}

// AddSessionToMemory implements [memory.Service]. It stores the messages of the session that are not stored yet, by
// their events' ids, stream by stream; partial events and confirmations are no messages. A message that another
// addition stores at the same time is stored once.
func (s *Service) AddSessionToMemory(ctx context.Context, sess session.Session) error {
	if sess == nil {
		return fmt.Errorf("%w: the session is nil", backends.ErrInvalid)
	}
	key := backends.SessionKey{App: sess.AppName(), User: sess.UserID(), Session: sess.ID()}
	streams := map[backends.Stream][]backends.Message{}
	var order []backends.Stream
	for e := range sess.Events().All() {
		stream := window.StreamOf(e)
		msg, ok := middleware.MessageOf(e, int64(len(streams[stream])))
		if !ok {
			continue
		}
		if streams[stream] == nil {
			order = append(order, stream)
		}
		if s.cfg.Redactor != nil {
			msg = middleware.RedactMessage(s.cfg.Redactor, msg)
		}
		streams[stream] = append(streams[stream], msg)
	}
	for _, stream := range order {
		for messages := range slices.Chunk(streams[stream], batch) {
			missing, err := s.missing(ctx, key, stream, messages)
			if err == nil && len(missing) > 0 {
				_, err = s.store.AppendMessages(ctx, key, stream, missing)
			}
			if err != nil {
				return fmt.Errorf("adkmemory: add session to memory: %w", err)
			}
		}
	}
	return nil
}

// missing returns the messages that are not stored, each id once, so that a session which is stored already is only
// read.
func (s *Service) missing(ctx context.Context, key backends.SessionKey, stream backends.Stream, messages []backends.Message) ([]backends.Message, error) {
	refs := make([]backends.Ref, len(messages))
	for i, m := range messages {
		refs[i] = backends.Ref{Kind: backends.KindMessage, Session: key.Session, ID: m.ID}
	}
	stored, err := s.store.Lookup(ctx, key.App, key.User, refs)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, f := range stored {
		if f.Message.Stream == stream {
			known[f.ID] = true
		}
	}
	var out []backends.Message
	for _, m := range messages {
		if !known[m.ID] {
			known[m.ID] = true
			out = append(out, m)
		}
	}
	return out, nil
}

// SearchMemory implements [memory.Service]. It returns messages of all sessions of the user, the best first.
func (s *Service) SearchMemory(ctx context.Context, req *memory.SearchRequest) (*memory.SearchResponse, error) {
	if req == nil {
		return nil, fmt.Errorf("%w: the request is nil", backends.ErrInvalid)
	}
	found, err := s.search.Search(ctx, backends.SearchQuery{
		App: req.AppName, User: req.UserID, Kinds: []backends.Kind{backends.KindMessage}, Text: req.Query, Limit: s.cfg.MaxResults,
	})
	if err != nil {
		return nil, fmt.Errorf("adkmemory: search memory: %w", err)
	}
	res := &memory.SearchResponse{Memories: make([]memory.Entry, 0, len(found))}
	for _, f := range found {
		content, err := contentOf(f.Message)
		if err != nil {
			return nil, err
		}
		res.Memories = append(res.Memories, memory.Entry{
			ID: f.ID, Content: content, Author: f.Message.Author, Timestamp: f.Message.Time,
			CustomMetadata: map[string]any{"session": f.Session},
		})
	}
	return res, nil
}

// contentOf returns the message as it was said, or as text where the archive has only that.
func contentOf(m *backends.StoredMessage) (*genai.Content, error) {
	if m == nil {
		return nil, errors.New("adkmemory: search memory: a result is no message")
	}
	content := new(genai.Content)
	if m.Content != nil && json.Unmarshal(m.Content, content) == nil {
		return content, nil
	}
	return genai.NewContentFromText(m.Text, genai.Role(m.Role)), nil
}
