package sqlitefx_test

import (
	"context"
	"fmt"

	"go.uber.org/fx"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/sqlite/sqlitefx"
)

func Example() {
	app := fx.New(fx.NopLogger, fx.Supply(sqlitefx.Config{Path: ":memory:"}), sqlitefx.Module,
		fx.Invoke(func(s backends.Store) { fmt.Println(s != nil) }))
	if err := app.Start(context.Background()); err != nil { // app.Run() in a program
		fmt.Println(err)
	}
	if err := app.Stop(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: true
}
