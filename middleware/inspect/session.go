package inspect

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

const (
	cardsPerPage = 25
	pictureNotes = 200 // notes in the picture of the layers, those of the page included
	previewed    = 4   // messages shown with an observation on the time line
)

type sessionData struct {
	Key          backends.SessionKey
	MessagesLink string
	Active       struct{ Observations, Reflections, Tokens int }
	Cursors      []cursorRow
	Turns        *turnsData
	Recording    bool // a source of turns is configured
	Layers       *layers
	Cards        []card
	OldestFirst  bool
	OrderLink    string
	Newer, Older string
}

type cursorRow struct {
	Stream string
	Time   time.Time
}

// session is the page of one session.
func (h *handler) session(r *http.Request) (page, error) {
	key, err := h.open(r)
	if err != nil {
		return page{}, err
	}
	ctx := r.Context()
	snap, err := h.cfg.Store.Load(ctx, key, backends.Stamp{})
	if err != nil {
		return page{}, err
	}
	if snap == nil {
		snap = &backends.Snapshot{}
	}
	d := sessionData{Key: key, MessagesLink: link("messages", key), Recording: h.cfg.Turns != nil, Cursors: cursors(snap)}
	d.Active.Observations, d.Active.Reflections = len(snap.Observations), len(snap.Reflections)
	for _, o := range snap.Observations {
		d.Active.Tokens += o.Tokens
	}
	for _, n := range snap.Reflections {
		d.Active.Tokens += n.Tokens
	}
	if h.cfg.Turns != nil {
		d.Turns = newTurns(h.cfg.Turns.Turns(key), h.cfg.Memory)
	}
	newest, err := h.newestNote(ctx, key, snap)
	if err != nil {
		return page{}, err
	}
	if newest == 0 && d.Turns == nil {
		// A session that was never heard of looks like one that is refused.
		some, err := h.cfg.Store.ListMessages(ctx, key, backends.MessageQuery{Limit: 1})
		if err != nil {
			return page{}, err
		}
		if len(some) == 0 {
			return page{}, errNotFound
		}
	}
	if err := h.timeLine(r, &d, newest); err != nil {
		return page{}, err
	}
	return page{name: "session", Title: key.Session, Crumbs: []crumb{h.home(r, key)}, Data: d}, nil
}

func cursors(snap *backends.Snapshot) []cursorRow {
	rows := make([]cursorRow, 0, len(snap.Cursors))
	for stream, c := range snap.Cursors {
		rows = append(rows, cursorRow{Stream: streamName(stream), Time: c.Time})
	}
	slices.SortFunc(rows, func(a, b cursorRow) int { return b.Time.Compare(a.Time) })
	return rows[:min(len(rows), cardsPerPage)]
}

// newestNote is the highest Seq of a session's notes, 0 without any. It is that of an active one, unless those were
// deleted.
func (h *handler) newestNote(ctx context.Context, key backends.SessionKey, snap *backends.Snapshot) (int64, error) {
	var newest int64
	if n := len(snap.Observations); n > 0 {
		newest = snap.Observations[n-1].Seq
	}
	if n := len(snap.Reflections); n > 0 {
		newest = max(newest, snap.Reflections[n-1].Seq)
	}
	if newest > 0 {
		return newest, nil
	}
	notes, err := h.cfg.Store.ListNotes(ctx, key, backends.NoteQuery{Limit: backends.MaxListItems})
	if n := len(notes); n > 0 {
		newest = notes[n-1].Seq
	}
	return newest, err
}

// timeLine reads the notes around a page and makes its cards and its picture.
func (h *handler) timeLine(r *http.Request, d *sessionData, newest int64) error {
	at, err := number(r, "at") // newest first: the last note of the page; oldest first: the one before its first
	if err != nil {
		return err
	}
	d.OldestFirst = r.URL.Query().Get("order") == "oldest"
	order := "newest"
	if d.OldestFirst {
		order = "oldest"
	}
	to := func(order string, at int64) string {
		return link("session", d.Key, "order", order, "at", strconv.FormatInt(at, 10)) + "#timeline"
	}
	after := at
	if d.OldestFirst {
		d.OrderLink = link("session", d.Key) + "#timeline"
	} else {
		d.OrderLink = link("session", d.Key, "order", "oldest") + "#timeline"
		if at == 0 || at > newest {
			at = newest
		}
		after = max(0, at-pictureNotes)
	}
	notes, err := h.cfg.Store.ListNotes(r.Context(), d.Key, backends.NoteQuery{AfterSeq: after, Limit: pictureNotes})
	if err != nil {
		return err
	}
	var shown []backends.StoredNote
	if d.OldestFirst {
		shown = notes[:min(len(notes), cardsPerPage)]
		if at > 0 {
			d.Older = to(order, max(0, at-cardsPerPage))
		}
		if n := len(shown); n > 0 && shown[n-1].Seq < newest {
			d.Newer = to(order, shown[n-1].Seq)
		}
	} else {
		notes = slices.DeleteFunc(notes, func(n backends.StoredNote) bool { return n.Seq > at })
		shown = slices.Clone(notes[max(0, len(notes)-cardsPerPage):])
		next := after // no note is left of those that were read: go on before them
		if len(shown) > 0 {
			next = shown[0].Seq - 1
		}
		if next > 0 {
			d.Older = to(order, next)
		}
		if at < newest {
			d.Newer = to(order, min(newest, at+cardsPerPage))
		}
		slices.Reverse(shown)
	}
	d.Layers = newLayers(d.Key, notes)
	for _, n := range shown {
		c := newCard(d.Key, n)
		if n.Generation == 0 {
			if err := h.preview(r.Context(), d.Key, &c); err != nil {
				return err
			}
		}
		d.Cards = append(d.Cards, c)
	}
	return nil
}

// preview adds the first messages that an observation covers.
func (h *handler) preview(ctx context.Context, key backends.SessionKey, c *card) error {
	found, err := h.cfg.Store.ListMessages(ctx, key, backends.MessageQuery{ObservationID: c.ID, Limit: previewed})
	for _, m := range found {
		c.Messages = append(c.Messages, newMessage(m, maxPreview))
	}
	c.More = c.Count > len(found) && len(found) == previewed
	return err
}
