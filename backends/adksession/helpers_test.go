package adksession_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/adksession"
	"github.com/adkmemory/adkmemory/backends/gormstore"
	"github.com/adkmemory/adkmemory/backends/pgtest"
	"github.com/adkmemory/adkmemory/backends/postgres"
	"github.com/adkmemory/adkmemory/backends/sqlite"
)

func TestMain(m *testing.M) {
	if place := os.Getenv(childEnv); place != "" {
		child(place)
		return
	}
	code := pgtest.Main(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

var testKey = backends.SessionKey{App: "app", User: "user", Session: "session"}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// database makes empty databases of one kind.
type database struct {
	name string
	make func(t testing.TB) string // returns where it is: the path of a file, or a connection string
}

func databases() []database {
	return []database{
		{"sqlite", func(t testing.TB) string { return filepath.Join(t.TempDir(), "memory.db") }},
		{"postgres", func(t testing.TB) string { return pgtest.DSN(t) }},
	}
}

// onEach runs a test on every kind of database.
func onEach(t *testing.T, test func(t *testing.T, db database)) {
	t.Parallel()
	for _, db := range databases() {
		t.Run(db.name, func(t *testing.T) {
			t.Parallel()
			test(t, db)
		})
	}
}

func (db database) open(t testing.TB) *adksession.Service {
	return openAt(t, db.make(t), adksession.Config{})
}

// openAt opens a service with connections and a cache of its own, as another process would.
func openAt(t testing.TB, place string, cfg adksession.Config) *adksession.Service {
	t.Helper()
	return openOn(t, storeAt(t, place), cfg)
}

func openOn(t testing.TB, store *gormstore.Store, cfg adksession.Config) *adksession.Service {
	t.Helper()
	cfg.Reader = store.Reader()
	s, err := adksession.New(t.Context(), store.DB(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func storeAt(t testing.TB, place string) *gormstore.Store {
	t.Helper()
	store, end, err := openStore(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func openStore(ctx context.Context, place string) (*gormstore.Store, func() error, error) {
	if filepath.IsAbs(place) {
		store, err := sqlite.Open(ctx, place)
		if err != nil {
			return nil, nil, err
		}
		return store.Store, store.Close, nil
	}
	store, err := postgres.Open(ctx, place)
	if err != nil {
		return nil, nil, err
	}
	return store.Store, store.Close, nil
}

func create(t testing.TB, s session.Service) session.Session {
	t.Helper()
	created, err := s.Create(t.Context(), &session.CreateRequest{
		AppName: testKey.App, UserID: testKey.User, SessionID: testKey.Session,
	})
	if err != nil {
		t.Fatal(err)
	}
	return created.Session
}

func get(t testing.TB, s session.Service) session.Session {
	t.Helper()
	got, err := s.Get(t.Context(), getRequest())
	if err != nil {
		t.Fatal(err)
	}
	return got.Session
}

func getRequest() *session.GetRequest {
	return &session.GetRequest{AppName: testKey.App, UserID: testKey.User, SessionID: testKey.Session}
}

func add(t testing.TB, s session.Service, sess session.Session, events ...*session.Event) {
	t.Helper()
	for _, e := range events {
		if err := s.AppendEvent(context.WithoutCancel(t.Context()), sess, e); err != nil {
			t.Fatal(err)
		}
	}
}

// event makes an event whose id says which it is, in an invocation, at a second of its own.
func event(n int, invocation, author string, parts ...*genai.Part) *session.Event {
	e := &session.Event{
		ID: fmt.Sprint("e", n), InvocationID: invocation, Author: author, Timestamp: start.Add(time.Duration(n) * time.Second),
	}
	role := genai.RoleModel
	if author == "user" {
		role = genai.RoleUser
	}
	if len(parts) == 0 {
		parts = []*genai.Part{{Text: fmt.Sprint("text ", n)}}
	}
	e.Content = &genai.Content{Role: role, Parts: parts}
	return e
}

// turn makes a question and an answer.
func turn(n int) []*session.Event {
	invocation := fmt.Sprint("inv", n)
	return []*session.Event{event(2*n, invocation, "user"), event(2*n+1, invocation, "agent")}
}

// addTurns appends the turns from first to last.
func addTurns(t testing.TB, s session.Service, sess session.Session, first, last int) {
	t.Helper()
	for n := first; n <= last; n++ {
		add(t, s, sess, turn(n)...)
	}
}

func ids(sess session.Session) []string {
	var out []string
	for e := range sess.Events().All() {
		if e.CustomMetadata[adksession.SummaryKey] != nil {
			out = append(out, "summary")
			continue
		}
		out = append(out, e.ID)
	}
	return out
}

func idsFrom(first, last int) []string {
	var out []string
	for n := first; n <= last; n++ {
		out = append(out, fmt.Sprint("e", n))
	}
	return out
}
