package inspect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware"
)

// DefaultTimeout bounds one page when Config.Timeout is not set.
const DefaultTimeout = 10 * time.Second

// Store is what the pages read; every [backends.Store] is one.
type Store interface {
	backends.Loader
	backends.Archive
	ListSessions(ctx context.Context, q backends.SessionQuery) ([]backends.SessionInfo, error)
}

// Turns knows what recent model calls were sent, oldest first; a [middleware.Middleware] with Config.RecordTurns above 0
// does, for the calls of its own process.
type Turns interface {
	Turns(key backends.SessionKey) []middleware.TurnRecord
}

// Config is what [New] needs.
type Config struct {
	// Store holds the memory. Required.
	Store Store

	// Authorize decides who sees what; an error refuses. It is asked on every request, with user "" before sessions of
	// all users of an app are listed, and with a user before anything of that user is shown; where it allows the former
	// and refuses the latter, the user is left out of the list. What it refuses looks like what does not exist. Its
	// errors are not shown. It is called by many requests at once. Required.
	Authorize func(r *http.Request, app, user string) error

	// Apps are the apps to show. At least one is required; others are never asked for.
	Apps []string

	// Turns adds the token budget, the chart and the last prompt section to a session's page. Default: none.
	Turns Turns

	// Memory is the configuration that the middleware was given; the page draws its budgets. Default: its defaults.
	Memory middleware.Config

	// Timeout bounds one page. Default [DefaultTimeout].
	Timeout time.Duration

	// Logger takes failures of the store, without content. Default slog.Default().
	Logger *slog.Logger
}

func (c Config) validate() error {
	var errs []error
	fault := func(what string) {
		errs = append(errs, fmt.Errorf("%w: inspect: %s", middleware.ErrInvalidConfig, what))
	}
	if c.Store == nil {
		fault("Store is nil")
	}
	if c.Authorize == nil {
		fault("Authorize is nil; the page shows nobody's memory without it")
	}
	if len(c.Apps) == 0 {
		fault("Apps is empty; name the apps to show")
	}
	for _, app := range c.Apps {
		if err := backends.ValidateID("app", app); err != nil {
			fault("Apps: " + err.Error())
		}
	}
	if c.Timeout < 0 {
		fault("Timeout is negative")
	}
	return errors.Join(errs...)
}

type handler struct {
	cfg   Config
	views *views
}

// New returns the handler, or every fault of the configuration; the error wraps [middleware.ErrInvalidConfig]. The
// handler is safe for concurrent use. It expects paths without the prefix it is mounted under (http.StripPrefix), and
// only uses relative links.
func New(cfg Config) (http.Handler, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.Apps = slices.Clone(cfg.Apps)
	cfg.Memory = cfg.Memory.WithDefaults()
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	v, err := newViews()
	if err != nil {
		return nil, err
	}
	return &handler{cfg: cfg, views: v}, nil
}

// ServeHTTP implements [http.Handler].
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this page only reads", http.StatusMethodNotAllowed)
		return
	}
	if r.URL.Path == "" {
		toFolder(w, r)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.cfg.Timeout)
	defer cancel()
	r = r.WithContext(ctx)
	var p page
	var err error
	switch path := strings.TrimPrefix(r.URL.Path, "/"); path {
	case "":
		p, err = h.sessions(r)
	case "session":
		p, err = h.session(r)
	case "note":
		p, err = h.note(r)
	case "messages":
		p, err = h.messages(r)
	default:
		if h.views.asset(w, path) {
			return
		}
		err = errNotFound
	}
	if err != nil {
		p = h.problem(r, err)
	}
	h.views.render(w, p)
}

// secure sets what keeps a page of untrusted text harmless: no script, nothing from elsewhere, no frame around it, no
// copy in a cache, no address of it in a referrer.
func secure(header http.Header) {
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "+
		"base-uri 'none'; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
}

// toFolder redirects from the prefix without its last slash, where relative links would lead astray. The location is
// relative, because the handler does not know its prefix.
func toFolder(w http.ResponseWriter, r *http.Request) {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	last := path[strings.LastIndexByte(path, '/')+1:]
	if last == "" {
		http.NotFound(w, r)
		return
	}
	to := "./" + last + "/"
	if r.URL.RawQuery != "" {
		to += "?" + r.URL.RawQuery
	}
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusTemporaryRedirect)
}

// allowed reports whether the request may see a user of an app, or with user "" all of them.
func (h *handler) allowed(r *http.Request, app, user string) bool {
	return slices.Contains(h.cfg.Apps, app) && h.cfg.Authorize(r, app, user) == nil
}

// open returns the session that a request names, or errNotFound when it may not be seen. No store is asked before.
func (h *handler) open(r *http.Request) (backends.SessionKey, error) {
	q := r.URL.Query()
	key := backends.SessionKey{App: q.Get("app"), User: q.Get("user"), Session: q.Get("session")}
	if key.Validate() != nil || !h.allowed(r, key.App, key.User) {
		return key, errNotFound
	}
	return key, nil
}
