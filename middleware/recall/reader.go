package recall

import (
	"context"
	"slices"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

// reader reads a store for the tool.
type reader struct {
	store  Store
	search backends.Searcher
	cfg    Config
}

// view is whose memory is read: within the key's session what ADK's rules for branches and scopes would show to the
// agent, of other sessions of the user what any of their agents saw.
type view struct {
	key    backends.SessionKey
	stream backends.Stream
}

func (v view) sees(session string, s backends.Stream) bool {
	if session != v.key.Session {
		return s.Scope == ""
	}
	return s.VisibleFrom(v.stream)
}

// oversample is how many times more is searched than shown, since what the agent must not see is left out.
const oversample = 4

// find searches notes and messages.
func (r reader) find(ctx context.Context, v view, query string) (Result, error) {
	q := backends.SearchQuery{
		App: v.key.App, User: v.key.User, Session: v.key.Session, Text: query, Limit: oversample * r.cfg.MaxResults,
	}
	if r.cfg.AllSessions {
		q.Session = ""
	}
	found, err := r.search.Search(ctx, q)
	if err != nil {
		return Result{}, err
	}
	res := Result{Items: []Item{}}
	for _, f := range found {
		if len(res.Items) == r.cfg.MaxResults {
			break
		}
		switch {
		case f.Message != nil && v.sees(f.Session, f.Message.Stream):
			res.Items = append(res.Items, r.message(*f.Message, f.Session == v.key.Session))
		case f.Note != nil && v.sees(f.Session, f.Note.Stream):
			item := Item{Kind: string(f.Kind), When: span(f.Note.Range), Text: r.cut(f.Note.Text)}
			if f.Session == v.key.Session {
				item.Note = f.ID
			}
			res.Items = append(res.Items, item)
		}
	}
	if len(res.Items) == 0 {
		res.Hint = "nothing found; try other words"
	}
	return res, nil
}

// open returns a page of the messages behind a note of the session.
func (r reader) open(ctx context.Context, v view, note string, after int64) (Result, error) {
	leaves, err := r.leaves(ctx, v, note)
	if err != nil {
		return Result{}, err
	}
	res := Result{Items: []Item{}}
	for _, leaf := range leaves {
		messages, err := r.store.ListMessages(ctx, v.key, backends.MessageQuery{
			ObservationID: leaf, AfterSeq: max(0, after), Limit: r.cfg.PageSize + 1 - len(res.Items),
		})
		if err != nil {
			return Result{}, err
		}
		for _, m := range messages {
			if len(res.Items) == r.cfg.PageSize {
				res.Next = after
				return res, nil
			}
			after = m.Seq
			if v.sees(v.key.Session, m.Stream) {
				res.Items = append(res.Items, r.message(m, true))
			}
		}
	}
	if len(res.Items) == 0 {
		res.Hint = "no original messages are kept for this note"
	}
	return res, nil
}

// leaves returns the observations behind a note, oldest first.
func (r reader) leaves(ctx context.Context, v view, note string) ([]string, error) {
	pending, seen := []string{note}, map[string]bool{note: true}
	var out []backends.StoredNote
	for len(pending) > 0 {
		n := min(len(pending), backends.MaxListItems)
		notes, err := r.store.ListNotes(ctx, v.key, backends.NoteQuery{IDs: pending[:n], Limit: n})
		if err != nil {
			return nil, err
		}
		pending = pending[n:]
		for _, n := range notes {
			if !v.sees(v.key.Session, n.Stream) {
				continue
			}
			if n.Generation == 0 {
				out = append(out, n)
			}
			for _, source := range n.Sources {
				if !seen[source] {
					seen[source] = true
					pending = append(pending, source)
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b backends.StoredNote) int { return int(a.Seq - b.Seq) })
	ids := make([]string, len(out))
	for i, n := range out {
		ids[i] = n.ID
	}
	return ids, nil
}

// message shows a message. Its note can be opened when it is of the same session.
func (r reader) message(m backends.StoredMessage, same bool) Item {
	item := Item{Kind: string(backends.KindMessage), Author: m.Author, When: stamp(m.Time), Text: r.cut(m.Text)}
	if same {
		item.Note = m.ObservationID
	}
	return item
}

func (r reader) cut(text string) string {
	runes := []rune(text)
	if len(runes) <= r.cfg.MaxRunes {
		return text
	}
	return string(runes[:r.cfg.MaxRunes]) + "…"
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04")
}

func span(r backends.Range) string {
	from, to := stamp(r.StartTime), stamp(r.EndTime)
	if from == "" || from == to {
		return to
	}
	return from + " to " + to
}
