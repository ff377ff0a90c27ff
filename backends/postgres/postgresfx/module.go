// Package postgresfx provides a [backends.Store] in Postgres to an fx application.
package postgresfx

import (
	"context"
	"time"

	"go.uber.org/fx"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/postgres"
)

// connectTimeout bounds the first connection and the migration.
const connectTimeout = time.Minute

// Config names the database.
type Config struct {
	DSN string // as [postgres.Open] takes it; empty means the PG… environment variables
}

// Module provides the store and closes it when the application stops, after all that uses it.
var Module = fx.Module("adkmemory/postgres", fx.Provide(New))

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

// New connects, within a minute.
func New(p Params) (Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	store, err := postgres.Open(ctx, p.Config.DSN)
	if err != nil {
		return Result{}, err
	}
	p.Lifecycle.Append(fx.StopHook(store.Close))
	return Result{Store: store}, nil
}
