package inspect

import (
	"net/http"
	"strconv"

	"github.com/adkmemory/adkmemory/backends"
)

const (
	messagesPerPage = 30
	shownSources    = 100
)

type noteData struct {
	Key         backends.SessionKey
	Card        card
	Sources     []card // of a reflection, oldest first
	MoreSources int    // that are not shown
	Messages    messagesData
}

type messagesData struct {
	Key         backends.SessionKey
	Rows        []message
	Tokens      int // of the rows
	Whole       bool
	First, Next string
}

// note is the page of one note: what it says and what it was made of.
func (h *handler) note(r *http.Request) (page, error) {
	key, err := h.open(r)
	if err != nil {
		return page{}, err
	}
	id := r.URL.Query().Get("id")
	if backends.ValidateID("note id", id) != nil {
		return page{}, errNotFound
	}
	found, err := h.cfg.Store.ListNotes(r.Context(), key, backends.NoteQuery{IDs: []string{id}, Limit: 1})
	if err != nil {
		return page{}, err
	}
	if len(found) == 0 {
		return page{}, errNotFound
	}
	d := noteData{Key: key, Card: newCard(key, found[0])}
	if found[0].Generation > 0 {
		ids := found[0].Sources[:min(len(found[0].Sources), shownSources)]
		sources, err := h.cfg.Store.ListNotes(r.Context(), key, backends.NoteQuery{IDs: ids, Limit: shownSources})
		if err != nil {
			return page{}, err
		}
		for _, n := range sources {
			d.Sources = append(d.Sources, newCard(key, n))
		}
		d.MoreSources = len(found[0].Sources) - len(d.Sources)
	} else if d.Messages, err = h.readMessages(r, key, id); err != nil {
		return page{}, err
	}
	crumbs := []crumb{h.home(r, key), {key.Session, link("session", key)}}
	return page{name: "note", Title: d.Card.Name(), Crumbs: crumbs, Data: d}, nil
}

// messages is the page of all archived messages of a session, in the order they were stored.
func (h *handler) messages(r *http.Request) (page, error) {
	key, err := h.open(r)
	if err != nil {
		return page{}, err
	}
	d, err := h.readMessages(r, key, "")
	if err != nil {
		return page{}, err
	}
	if len(d.Rows) == 0 {
		return page{}, errNotFound
	}
	crumbs := []crumb{h.home(r, key), {key.Session, link("session", key)}}
	return page{name: "messages", Title: "Archived messages", Crumbs: crumbs, Data: d}, nil
}

// readMessages reads a page of the archived messages of an observation, or with id "" of the session.
func (h *handler) readMessages(r *http.Request, key backends.SessionKey, id string) (messagesData, error) {
	d := messagesData{Key: key}
	after, err := number(r, "after")
	if err != nil {
		return d, err
	}
	found, err := h.cfg.Store.ListMessages(r.Context(), key, backends.MessageQuery{
		ObservationID: id, AfterSeq: after, Limit: messagesPerPage + 1,
	})
	if err != nil {
		return d, err
	}
	name := "messages"
	if id != "" {
		name = "note"
	}
	if after > 0 {
		d.First = link(name, key, "id", id)
	}
	if len(found) > messagesPerPage {
		found = found[:messagesPerPage]
		d.Next = link(name, key, "id", id, "after", strconv.FormatInt(found[messagesPerPage-1].Seq, 10))
	}
	d.Whole = d.First == "" && d.Next == ""
	for _, m := range found {
		d.Tokens += m.Tokens
		d.Rows = append(d.Rows, newMessage(m, maxText))
	}
	return d, nil
}
