// Package pgtest gives tests a real Postgres. A test package calls [Main] in its TestMain and [DSN] in its tests.
//
// The server is the one that ADKMEMORY_TEST_POSTGRES_DSN names, in which the test package gets a database of its own.
// Without it a throwaway cluster is started from the binaries in the PATH or in /usr/lib/postgresql; where there are
// none and the tests run as root with apt-get, they are installed. Otherwise the tests fail and say what to install.
// ADKMEMORY_TEST_POSTGRES_DSN=off skips them.
package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Env is the environment variable that names the server to test on. [Main] sets it for the tests, and for the processes
// that they start.
const Env = "ADKMEMORY_TEST_POSTGRES_DSN"

// off is the value of [Env] that skips the tests.
const off = "off"

// Main runs a package's tests beside a Postgres and returns the exit code.
func Main(m interface{ Run() int }) int {
	ctx := context.Background()
	var stop func() error
	var err error
	switch dsn := os.Getenv(Env); dsn {
	case off:
		return m.Run()
	case "":
		stop, err = throwaway(ctx)
	default:
		stop, err = database(ctx, dsn)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return 1
	}
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest: stop:", err)
		return max(code, 1)
	}
	return code
}

func throwaway(ctx context.Context) (func() error, error) {
	cluster, err := NewCluster(ctx)
	if err != nil {
		return nil, err
	}
	return cluster.Remove, os.Setenv(Env, cluster.DSN())
}

// database makes a new database on a server.
func database(ctx context.Context, dsn string) (func() error, error) {
	name := "adkmemory_test_" + strings.ToLower(rand.Text())
	if err := execute(ctx, dsn, "CREATE DATABASE "+name); err != nil {
		return nil, fmt.Errorf("%s names a server on which no database can be made: %w", Env, err)
	}
	drop := func() error { return execute(ctx, dsn, "DROP DATABASE "+name+" WITH (FORCE)") }
	return drop, os.Setenv(Env, With(dsn, "dbname", name))
}

// DSN returns the connection string of a new, empty schema. It is dropped when the test has ended.
func DSN(t testing.TB) string {
	t.Helper()
	dsn := os.Getenv(Env)
	switch dsn {
	case off:
		t.Skip(Env + " is off")
	case "":
		t.Fatal("pgtest: TestMain does not call pgtest.Main")
	}
	schema := "test_" + strings.ToLower(rand.Text())
	if err := execute(context.Background(), dsn, "CREATE SCHEMA "+schema); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := execute(context.Background(), dsn, "DROP SCHEMA "+schema+" CASCADE"); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return With(dsn, "search_path", schema)
}

// execute runs one statement on a connection of its own.
func execute(ctx context.Context, dsn, statement string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, statement)
	return err
}

// With sets a parameter of a connection string, which is a URL or a list of key=value.
func With(dsn, key, value string) string {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return dsn + " " + key + "=" + value
	}
	if key == "dbname" {
		u.Path = "/" + value
		return u.String()
	}
	q := u.Query()
	q.Set(key, value)
	u.RawQuery = q.Encode()
	return u.String()
}
