package middlewarefx_test

import (
	"context"
	"fmt"

	"go.uber.org/fx"

	"github.com/adkmemory/adkmemory/backends/sqlite/sqlitefx"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/middlewarefx"
)

// An agent takes *middleware.Middleware from the application and wraps its model with it.
func Example() {
	app := fx.New(
		fx.NopLogger,
		fx.Supply(middleware.Config{Enabled: true}, sqlitefx.Config{Path: ":memory:"}),
		sqlitefx.Module,
		middlewarefx.Module,
		fx.Invoke(func(m *middleware.Middleware) { fmt.Println(m.Enabled()) }),
	)
	if err := app.Start(context.Background()); err != nil { // app.Run() in a program
		fmt.Println(err)
	}
	if err := app.Stop(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: true
}
