package gormtest_test

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends/gormstore/gormtest"
	"github.com/adkmemory/adkmemory/backends/sqlite"
)

func ExampleAfter() {
	ctx := context.Background()
	store, err := sqlite.Open(ctx, ":memory:")
	if err != nil {
		panic(err)
	}
	defer func() { _ = store.Close() }()

	statements := 0
	if err := gormtest.After(store.DB(), func(*gorm.DB) { statements++ }); err != nil {
		panic(err)
	}
	err = store.DeleteApp(ctx, "shop")
	fmt.Println(err, statements > 0)
	// Output: <nil> true
}
