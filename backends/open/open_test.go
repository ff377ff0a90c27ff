package open_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/open"
	"github.com/adkmemory/adkmemory/backends/pgtest"
)

func TestMain(m *testing.M) {
	code := pgtest.Main(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func TestOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, dsn := range map[string]string{
		"a path": filepath.Join(dir, "a.db"), "sqlite:path": "sqlite:" + filepath.Join(dir, "b.db"),
		"sqlite://path": "sqlite://" + filepath.Join(dir, "c.db"), "memory": ":memory:",
	} {
		t.Run("OPS-2 SQLite by "+name, func(t *testing.T) {
			t.Parallel()
			use(t, dsn)
		})
	}
	t.Run("OPS-2 Postgres, by URL or by key=value", func(t *testing.T) {
		t.Parallel()
		dsn := pgtest.DSN(t)
		use(t, dsn)
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		query := url.Values{"host": {config.Host}, "port": {strconv.Itoa(int(config.Port))}, "user": {config.User}, "password": {config.Password}, "sslmode": {"disable"}}
		for name, value := range config.RuntimeParams {
			query.Set(name, value)
		}
		use(t, "postgres:///"+config.Database+"?"+query.Encode())
	})
	t.Run("OPS-2 anything else is refused, without its password", func(t *testing.T) {
		t.Parallel()
		for _, dsn := range []string{"", "mysql://bob:hunter2@host/db", "sqlite:"} {
			if _, err := open.Open(t.Context(), dsn); !errors.Is(err, backends.ErrInvalid) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%q: %v", dsn, err)
			}
		}
	})
}

func use(t *testing.T, dsn string) {
	t.Helper()
	s, err := open.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Load(t.Context(), backends.SessionKey{App: "a", User: "u", Session: "s"}, backends.Stamp{}); err != nil {
		t.Error(err)
	}
}

func ExampleOpen() {
	s, err := open.Open(context.Background(), ":memory:") // or "memory.db", or "postgres://…"
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Close())
	// Output: <nil>
}
