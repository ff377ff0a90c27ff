package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/backends/postgres"
	"github.com/adkmemory/adkmemory/backends/sqlite"
	"github.com/adkmemory/adkmemory/examples/internal/transcript"
	"github.com/adkmemory/adkmemory/retriever/rag"
)

// All conversations are of one user of this app, which is deleted in the end.
const (
	app  = "recall-example"
	user = "user"
)

// store is what is asked of a backend here.
type store interface {
	backends.Store
	backends.Appender
	backends.Searcher
	backends.VectorStore
}

// library holds the messages of a transcript.
type library struct {
	db     store
	search backends.Searcher
	hybrid bool
	wipe   func() error
}

func openLibrary(ctx context.Context, o options) (*library, error) {
	l := &library{hybrid: o.hybrid, wipe: func() error { return nil }}
	var err error
	switch o.backend {
	case "inmemory":
		l.db = inmemory.New()
	case "sqlite":
		path := o.dsn
		if path == "" {
			dir, err := os.MkdirTemp("", "recall")
			if err != nil {
				return nil, err
			}
			l.wipe = func() error { return os.RemoveAll(dir) }
			path = filepath.Join(dir, "recall.db")
		}
		l.db, err = sqlite.Open(ctx, path)
	case "postgres":
		if o.dsn == "" {
			return nil, errors.New("-backend postgres needs -dsn")
		}
		l.db, err = postgres.Open(ctx, o.dsn)
	default:
		return nil, fmt.Errorf("-backend %q: want inmemory, sqlite or postgres", o.backend)
	}
	if err != nil {
		return nil, errors.Join(err, l.wipe())
	}
	l.search = l.db
	if o.hybrid {
		l.search = rag.Hybrid{Words: l.db, Vectors: l.db, Embedder: rag.Local{}}
	}
	return l, l.db.DeleteApp(ctx, app) // of a run that was interrupted
}

func (l *library) close(ctx context.Context) error {
	return errors.Join(l.db.DeleteApp(ctx, app), l.db.Close(), l.wipe())
}

// store reads a transcript and stores its messages, each conversation as one session.
func (l *library) store(ctx context.Context, path string) error {
	conversations, err := transcript.Open(path)
	if err != nil {
		return err
	}
	for _, c := range conversations {
		key := backends.SessionKey{App: app, User: user, Session: c.Session}
		for messages := range slices.Chunk(messagesOf(c), 100) {
			if _, err := l.db.AppendMessages(ctx, key, backends.Stream{}, messages); err != nil {
				return err
			}
			if l.hybrid {
				if err := l.embed(ctx, key, messages); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (l *library) embed(ctx context.Context, key backends.SessionKey, messages []backends.Message) error {
	texts := make([]string, len(messages))
	for i, m := range messages {
		texts[i] = m.Author + ": " + m.Text
	}
	values, err := rag.Local{}.Embed(ctx, rag.Document, texts)
	if err != nil {
		return err
	}
	vectors := make([]backends.Vector, len(messages))
	for i, m := range messages {
		vectors[i] = backends.Vector{
			Ref:   backends.Ref{Kind: backends.KindMessage, Session: key.Session, ID: m.ID},
			Model: rag.Local{}.Model(), Values: values[i],
		}
	}
	return l.db.PutVectors(ctx, key.App, key.User, vectors)
}

// messagesOf gives every message of a conversation an id of its own: a repeated or missing id gets its position.
func messagesOf(c transcript.Conversation) []backends.Message {
	seen := map[string]bool{}
	out := make([]backends.Message, len(c.Messages))
	for i, m := range c.Messages {
		id := m.ID
		if id == "" || seen[id] {
			id = fmt.Sprintf("%s#%d", id, i)
		}
		seen[id] = true
		out[i] = backends.Message{
			ID: id, Index: int64(i), Author: m.Author, Role: m.Content.Role, Time: m.Time, Text: textOf(m.Content),
		}
	}
	return out
}

// textOf is what was said, and tool calls and results with their values.
func textOf(c *genai.Content) string {
	var lines []string
	for _, p := range c.Parts {
		switch {
		case p.Text != "":
			lines = append(lines, p.Text)
		case p.FunctionCall != nil:
			lines = append(lines, p.FunctionCall.Name+" "+asJSON(p.FunctionCall.Args))
		case p.FunctionResponse != nil:
			lines = append(lines, p.FunctionResponse.Name+" "+asJSON(p.FunctionResponse.Response))
		}
	}
	return strings.Join(lines, "\n")
}

func asJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(raw)
}
