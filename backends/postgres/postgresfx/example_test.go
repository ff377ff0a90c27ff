package postgresfx_test

import (
	"go.uber.org/fx"

	"github.com/adkmemory/adkmemory/backends/postgres/postgresfx"
)

func Example() {
	_ = fx.Options(
		fx.Supply(postgresfx.Config{DSN: "postgres://agent@db.internal/memory?sslmode=verify-full"}),
		postgresfx.Module,
	)
}
