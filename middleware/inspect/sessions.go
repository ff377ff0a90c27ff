package inspect

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

const (
	sessionsPerPage = 50
	maxOffset       = 1_000_000
	maxSearch       = 200 // bytes
)

type sessionsData struct {
	App, User   string
	Apps        []crumb // the others that may be seen
	Search      string
	ClearLink   string // without the search
	AllLink     string // to all users
	Rows        []sessionRow
	First, Last int
	Newer       string
	Older       string
}

type sessionRow struct {
	Session, User, Link, UserLink       string
	Observations, Reflections, Messages int
	Updated                             time.Time
}

// sessions is the list: of one app, and of one user when the request names one.
func (h *handler) sessions(r *http.Request) (page, error) {
	q := r.URL.Query()
	d := sessionsData{App: q.Get("app"), User: q.Get("user"), Search: strings.TrimSpace(q.Get("q"))}
	offset, err := number(r, "offset")
	if err != nil || offset > maxOffset || len(d.Search) > maxSearch {
		return page{}, errBadRequest
	}
	if !h.chooseApp(r, &d) {
		return page{}, errForbidden
	}
	found, err := h.cfg.Store.ListSessions(r.Context(), backends.SessionQuery{
		App: d.App, User: d.User, Contains: d.Search, Offset: int(offset), Limit: sessionsPerPage + 1,
	})
	if err != nil {
		return page{}, err
	}
	at := func(offset int64) string {
		return link("./", backends.SessionKey{App: d.App, User: d.User}, "q", d.Search, "offset", strconv.FormatInt(offset, 10))
	}
	if offset > 0 {
		d.Newer = at(max(0, offset-sessionsPerPage))
	}
	if len(found) > sessionsPerPage {
		found = found[:sessionsPerPage]
		d.Older = at(offset + sessionsPerPage)
	}
	d.ClearLink = link("./", backends.SessionKey{App: d.App, User: d.User})
	allowed := map[string]bool{}
	for _, s := range found {
		user := s.Key.User
		if _, asked := allowed[user]; !asked {
			allowed[user] = h.allowed(r, d.App, user)
		}
		if !allowed[user] {
			continue
		}
		d.Rows = append(d.Rows, sessionRow{
			Session: s.Key.Session, User: user, Link: link("session", s.Key),
			UserLink:     link("./", backends.SessionKey{App: d.App, User: user}),
			Observations: s.Observations, Reflections: s.Reflections, Messages: s.Messages, Updated: s.UpdatedAt,
		})
	}
	d.First, d.Last = int(offset)+1, int(offset)+len(d.Rows)
	return page{name: "sessions", Title: "Sessions of " + d.App, Data: d}, nil
}

// chooseApp fills in the app to list and the others. Without a name it is the first that may be listed. It reports
// whether the list is allowed.
func (h *handler) chooseApp(r *http.Request, d *sessionsData) bool {
	for _, app := range h.cfg.Apps {
		if app != d.App && !h.allowed(r, app, "") {
			continue
		}
		if d.App == "" && d.User == "" {
			d.App = app
		}
		if app != d.App {
			d.Apps = append(d.Apps, crumb{app, link("./", backends.SessionKey{App: app})})
		}
	}
	if d.User != "" {
		if d.App == "" {
			d.App = h.cfg.Apps[0]
		}
		if h.allowed(r, d.App, "") {
			d.AllLink = link("./", backends.SessionKey{App: d.App})
		}
	}
	return d.App != "" && backends.ValidateID("app", d.App) == nil && len(d.User) <= backends.MaxIDBytes &&
		h.allowed(r, d.App, d.User)
}

// home is the list that a session's page leads back to: of all users where that is allowed, else of its own.
func (h *handler) home(r *http.Request, key backends.SessionKey) crumb {
	if h.allowed(r, key.App, "") {
		return crumb{"Sessions of " + key.App, link("./", backends.SessionKey{App: key.App})}
	}
	return crumb{"Sessions of " + key.User, link("./", backends.SessionKey{App: key.App, User: key.User})}
}
