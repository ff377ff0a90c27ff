package inspect_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/inspect"
)

func TestNew(t *testing.T) {
	t.Parallel()
	t.Run("OPS-5 nothing is shown without an authorize func, and every fault is named", func(t *testing.T) {
		t.Parallel()
		h, err := inspect.New(inspect.Config{Timeout: -1})
		if h != nil || !errors.Is(err, middleware.ErrInvalidConfig) {
			t.Fatalf("New = %v, %v", h, err)
		}
		for _, field := range []string{"Authorize", "Store", "Apps", "Timeout"} {
			if !strings.Contains(err.Error(), field) {
				t.Errorf("%v does not name %s", err, field)
			}
		}
	})
	t.Run("OPS-5 an app without a name is a fault", func(t *testing.T) {
		t.Parallel()
		if _, err := inspect.New(inspect.Config{Store: openStore(t), Authorize: anybody, Apps: []string{""}}); err == nil {
			t.Error("no error")
		}
	})
}

// watched counts what is asked of a store, and fails or hangs when told to.
type watched struct {
	inspect.Store
	mu    sync.Mutex
	calls int
	fail  func(ctx context.Context) error
}

func (s *watched) count(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.fail != nil {
		return s.fail(ctx)
	}
	return nil
}

func (s *watched) Load(ctx context.Context, key backends.SessionKey, have backends.Stamp) (*backends.Snapshot, error) {
	if err := s.count(ctx); err != nil {
		return nil, err
	}
	return s.Store.Load(ctx, key, have)
}

func (s *watched) ListSessions(ctx context.Context, q backends.SessionQuery) ([]backends.SessionInfo, error) {
	if err := s.count(ctx); err != nil {
		return nil, err
	}
	return s.Store.ListSessions(ctx, q)
}

func (s *watched) ListNotes(ctx context.Context, key backends.SessionKey, q backends.NoteQuery) ([]backends.StoredNote, error) {
	if err := s.count(ctx); err != nil {
		return nil, err
	}
	return s.Store.ListNotes(ctx, key, q)
}

func (s *watched) ListMessages(ctx context.Context, key backends.SessionKey, q backends.MessageQuery) ([]backends.StoredMessage, error) {
	if err := s.count(ctx); err != nil {
		return nil, err
	}
	return s.Store.ListMessages(ctx, key, q)
}

func TestAuthorize(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	ada, ben := backends.SessionKey{App: app, User: "ada", Session: "holiday"}, backends.SessionKey{App: app, User: "ben", Session: "secret-trip"}
	other := backends.SessionKey{App: "payroll", User: "ada", Session: "salary"}
	for _, key := range []backends.SessionKey{ada, ben, other} {
		fill(t, store, key, 2, 2, plainWords())
	}
	turns := turnsFunc(func(backends.SessionKey) []middleware.TurnRecord { return records(plainWords(), 3) })
	refuse := errors.New("the reason is nobody's business")
	// seesOnly allows one user, and the list of all users when asked to.
	seesOnly := func(user string, list bool) func(*http.Request, string, string) error {
		return func(_ *http.Request, _, u string) error {
			if u == user || u == "" && list {
				return nil
			}
			return refuse
		}
	}
	pages := func(key backends.SessionKey, note string) []string {
		return []string{at("session", key), at("session", key, "order", "oldest"), at("note", key, "id", note), at("messages", key)}
	}

	t.Run("OPS-5 a refused session looks like one that does not exist, and the store is not asked", func(t *testing.T) {
		t.Parallel()
		s := &watched{Store: store}
		h := newPage(t, inspect.Config{Store: s, Turns: turns, Authorize: seesOnly("ada", true)})
		refused := pages(ben, "o0")
		refused = append(refused, pages(other, "o0")...)
		nowhere := get(t, h, "no-such-page")
		for _, address := range refused {
			w := get(t, h, address)
			if w.Code != http.StatusNotFound || w.Body.String() != nowhere.Body.String() {
				t.Errorf("%s: status %d\n%s", address, w.Code, w.Body)
			}
		}
		if s.calls != 0 {
			t.Errorf("the store was asked %d times", s.calls)
		}
		quiet := newPage(t, inspect.Config{Store: s, Authorize: seesOnly("ada", true)})
		missing := get(t, quiet, at("session", backends.SessionKey{App: app, User: "ada", Session: "never"}))
		if missing.Code != http.StatusNotFound || missing.Body.String() != nowhere.Body.String() {
			t.Errorf("a session that does not exist: status %d\n%s", missing.Code, missing.Body)
		}
		for _, address := range pages(ada, "o0") {
			ok(t, h, address)
		}
	})
	t.Run("OPS-5 the list of all users needs a permission of its own", func(t *testing.T) {
		t.Parallel()
		s := &watched{Store: store}
		h := newPage(t, inspect.Config{Store: s, Authorize: seesOnly("ada", false)})
		for _, address := range []string{"", "?app=travel", "?app=travel&user=ben", "?app=payroll&user=ada", "?q=trip"} {
			if w := get(t, h, address); w.Code != http.StatusForbidden || strings.Contains(w.Body.String(), refuse.Error()) {
				t.Errorf("%q: status %d\n%s", address, w.Code, w.Body)
			}
		}
		if s.calls != 0 {
			t.Errorf("the store was asked %d times", s.calls)
		}
		if own := ok(t, h, "?app=travel&user=ada"); !strings.Contains(own, "holiday") || strings.Contains(own, "all users") {
			t.Errorf("the list of one user:\n%s", own)
		}
		if page := ok(t, h, at("session", ada)); !slices.Contains(parse(t, page).links(), "./?app=travel&user=ada") {
			t.Error("the way back does not lead to the user's own list")
		}
	})
	t.Run("OPS-5 users that are refused are left out of the list", func(t *testing.T) {
		t.Parallel()
		list := ok(t, newPage(t, inspect.Config{Store: store, Authorize: seesOnly("ada", true)}), "")
		if !strings.Contains(list, "holiday") || strings.Contains(list, "ben") || strings.Contains(list, "secret-trip") {
			t.Errorf("the list:\n%s", list)
		}
	})
	t.Run("OPS-5 an app that is not named is never asked for", func(t *testing.T) {
		t.Parallel()
		h := newPage(t, inspect.Config{Store: store, Authorize: func(_ *http.Request, app, _ string) error {
			if app != "travel" {
				t.Errorf("asked about %q", app)
			}
			return nil
		}})
		if w := get(t, h, "?app=payroll"); w.Code != http.StatusForbidden {
			t.Errorf("status %d", w.Code)
		}
	})
	t.Run("OPS-5 other apps are offered only where they may be seen", func(t *testing.T) {
		t.Parallel()
		h := newPage(t, inspect.Config{Store: store, Apps: []string{"payroll", app, "closed"}, Authorize: func(_ *http.Request, app, _ string) error {
			if app == "closed" {
				return refuse
			}
			return nil
		}})
		list := ok(t, h, "")
		if !strings.Contains(list, "salary") || !strings.Contains(list, "./?app=travel") || strings.Contains(list, "closed") {
			t.Errorf("the list:\n%s", list)
		}
	})
	t.Run("OPS-5 pages are safe for concurrent use", func(t *testing.T) {
		t.Parallel()
		h := newPage(t, inspect.Config{Store: store, Turns: turns})
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for _, address := range append(pages(ada, "o0"), "", "?q=h", "assets/style.css") {
					if w := request(t.Context(), h, http.MethodGet, address); w.Code != http.StatusOK {
						t.Errorf("%s: status %d", address, w.Code)
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestRequests(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	key := backends.SessionKey{App: app, User: "ada", Session: "holiday"}
	fill(t, store, key, 1, 2, plainWords())
	h := newPage(t, inspect.Config{Store: store})
	t.Run("OPS-5 read-only: every method but GET and HEAD is refused", func(t *testing.T) {
		t.Parallel()
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "FOO"} {
			w := request(t.Context(), h, method, at("session", key))
			if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s: status %d, Allow %q", method, w.Code, w.Header().Get("Allow"))
			}
		}
		if w := request(t.Context(), h, http.MethodHead, at("session", key)); w.Code != http.StatusOK {
			t.Errorf("HEAD: status %d", w.Code)
		}
	})
	t.Run("OPS-5 every answer forbids scripts, framing, sniffing, referrers and copies", func(t *testing.T) {
		t.Parallel()
		want := map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		}
		for _, address := range []string{"", at("session", key), at("note", key, "id", "o0"), at("messages", key), "nowhere", "?offset=x"} {
			header := get(t, h, address).Header()
			for name, value := range want {
				if header.Get(name) != value {
					t.Errorf("%q: %s is %q", address, name, header.Get(name))
				}
			}
			if got := header.Get("Content-Type"); got != "text/html; charset=utf-8" {
				t.Errorf("%q: type %q", address, got)
			}
		}
		for address, kind := range map[string]string{"assets/style.css": "text/css; charset=utf-8", "assets/icon.svg": "image/svg+xml"} {
			if w := get(t, h, address); w.Header().Get("Content-Type") != kind || w.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %v", address, w.Header())
			}
		}
	})
	t.Run("OPS-5 what is not understood is refused, never a fault of the server", func(t *testing.T) {
		t.Parallel()
		long := strings.Repeat("x", 2000)
		for address, status := range map[string]int{
			"?offset=x": 400, "?offset=-1": 400, "?offset=99999999999": 400, "?q=" + long: 400, "?user=" + long: 403, "?app=%00": 403,
			at("session", key, "at", "1e3"): 400, at("session", key, "at", "9999999"): 200, at("messages", key, "after", "-4"): 400,
			at("note", key): 404, at("note", key, "id", long): 404, at("note", key, "id", "o9"): 404, "session": 404,
			at("session", backends.SessionKey{App: app, User: "\xff", Session: "s"}): 404, "assets/": 404, "assets/../inspect.go": 404,
			"templates/common/layout.html": 404,
		} {
			if w := get(t, h, address); w.Code != status {
				t.Errorf("%.60s: status %d, want %d", address, w.Code, status)
			}
		}
	})
	for name, tc := range map[string]struct {
		fail   func(context.Context) error
		status int
	}{
		"OPS-5 a store that fails gives a page that does not say how": {func(context.Context) error { return errors.New("dial db.internal") }, 500},
		"OPS-5 a store that hangs is given up by the timeout": {func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("dial db.internal: %w", ctx.Err())
		}, 503},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			s := &watched{Store: store, fail: tc.fail}
			h := newPage(t, inspect.Config{Store: s, Timeout: 20 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			for _, address := range []string{"", at("session", key), at("note", key, "id", "o0"), at("messages", key)} {
				w := get(t, h, address)
				if w.Code != tc.status || strings.Contains(w.Body.String(), "db.internal") {
					t.Errorf("%s: status %d\n%s", address, w.Code, w.Body)
				}
			}
			if n := strings.Count(log.String(), "db.internal"); n != 4 {
				t.Errorf("%d failures were logged", n)
			}
		})
	}
	t.Run("OPS-5 a request that is cancelled stops the store", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		s := &watched{Store: store, fail: func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}}
		h := newPage(t, inspect.Config{Store: s, Timeout: time.Hour, Logger: slog.New(slog.DiscardHandler)})
		if w := request(ctx, h, http.MethodGet, ""); w.Code != http.StatusServiceUnavailable {
			t.Errorf("status %d", w.Code)
		}
	})
}
