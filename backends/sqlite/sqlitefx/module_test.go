package sqlitefx_test

import (
	"errors"
	"path/filepath"
	"testing"

	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"
	"go.uber.org/goleak"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/sqlite/sqlitefx"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestModule(t *testing.T) {
	t.Parallel()
	t.Run("OPS-3 provides a store and closes it", func(t *testing.T) {
		t.Parallel()
		var store backends.Store
		app := fxtest.New(t, fx.NopLogger, fx.Supply(sqlitefx.Config{Path: filepath.Join(t.TempDir(), "m.db")}), sqlitefx.Module, fx.Populate(&store))
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
	t.Run("OPS-3 a file that cannot be opened fails the application", func(t *testing.T) {
		t.Parallel()
		app := fx.New(fx.NopLogger, fx.Supply(sqlitefx.Config{Path: t.TempDir()}), sqlitefx.Module, fx.Invoke(func(backends.Store) {}))
		if app.Err() == nil {
			t.Error("a folder was opened as a database")
		}
	})
}
