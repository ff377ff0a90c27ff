package postgresfx_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"
	"go.uber.org/goleak"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/pgtest"
	"github.com/adkmemory/adkmemory/backends/postgres/postgresfx"
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

func TestModule(t *testing.T) {
	t.Parallel()
	t.Run("OPS-3 provides a store and closes it", func(t *testing.T) {
		t.Parallel()
		var store backends.Store
		app := fxtest.New(t, fx.NopLogger, fx.Supply(postgresfx.Config{DSN: pgtest.DSN(t)}), postgresfx.Module, fx.Populate(&store))
		app.RequireStart()
		key := backends.SessionKey{App: "a", User: "u", Session: "s"}
		if _, err := store.Load(t.Context(), key, backends.Stamp{}); err != nil {
			t.Error(err)
		}
		app.RequireStop()
		if _, err := store.Load(t.Context(), key, backends.Stamp{}); !errors.Is(err, backends.ErrClosed) {
			t.Error(err)
		}
	})
	t.Run("OPS-3 a server that is not there fails the application", func(t *testing.T) {
		t.Parallel()
		app := fx.New(fx.NopLogger, fx.Supply(postgresfx.Config{DSN: "postgres://127.0.0.1:1/none?connect_timeout=1"}), postgresfx.Module,
			fx.Invoke(func(backends.Store) {}))
		if app.Err() == nil {
			t.Error("a server that is not there was opened")
		}
	})
}
