package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

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

func postgresExample(t *testing.T, args ...string) string {
	t.Helper()
	var out strings.Builder
	if err := run(t.Context(), args, &out, func(string) string { return "" }); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return out.String()
}

func TestRun(t *testing.T) {
	t.Parallel()
	t.Run("STO-4 replicas on one database note every message once", func(t *testing.T) {
		t.Parallel()
		out := postgresExample(t, "-dsn", pgtest.DSN(t))
		if !strings.Contains(out, "no message twice, none left out") || strings.Contains(out, "holds 0 observations") {
			t.Errorf("got\n%s", out)
		}
	})
	t.Run("without a database it starts a throwaway server", func(t *testing.T) {
		t.Parallel()
		if os.Getenv(pgtest.Env) == "off" {
			t.Skip(pgtest.Env + " is off")
		}
		out := postgresExample(t)
		if !strings.Contains(out, "throwaway server") || !strings.Contains(out, "no message twice") && !strings.Contains(out, "ADKMEMORY_DSN=") {
			t.Errorf("got\n%s", out)
		}
	})
}
