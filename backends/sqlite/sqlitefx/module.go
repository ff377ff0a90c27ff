// Package sqlitefx provides a [backends.Store] in a SQLite file to an fx application.
package sqlitefx

import (
	"context"

	"go.uber.org/fx"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/sqlite"
)

// DefaultPath is the file when no [Config] is supplied.
const DefaultPath = "memory.db"

// Config names the file.
type Config struct {
	Path string // default [DefaultPath]
}

// Module provides the store and closes it when the application stops, after all that uses it.
var Module = fx.Module("adkmemory/sqlite", fx.Provide(New))

// Params is what [New] takes from the application.
type Params struct {
	fx.In

	Config    Config `optional:"true"`
	Lifecycle fx.Lifecycle
}

// Result is what [New] provides.
type Result struct {
	fx.Out

	Store backends.Store
}

// New opens the file.
func New(p Params) (Result, error) {
	if p.Config.Path == "" {
		p.Config.Path = DefaultPath
	}
	store, err := sqlite.Open(context.Background(), p.Config.Path)
	if err != nil {
		return Result{}, err
	}
	p.Lifecycle.Append(fx.StopHook(store.Close))
	return Result{Store: store}, nil
}
