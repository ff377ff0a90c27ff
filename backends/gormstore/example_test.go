package gormstore_test

import (
	"context"
	"fmt"

	"github.com/adkmemory/adkmemory/backends/gormstore"
	"github.com/adkmemory/adkmemory/backends/sqlite"
)

// A component of yours keeps a table of its own beside the store's.
func ExampleMigrate() {
	ctx := context.Background()
	store, err := sqlite.Open(ctx, ":memory:")
	if err != nil {
		panic(err)
	}
	defer func() { _ = store.Close() }()

	err = gormstore.Migrate(ctx, store.DB(), "billing", []gormstore.Migration{
		gormstore.SQL("0001_usage", "CREATE TABLE billing_usage (app TEXT PRIMARY KEY, tokens BIGINT NOT NULL)"),
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(store.DB().Exec("INSERT INTO billing_usage VALUES ('shop', 12)").Error)
	// Output: <nil>
}

// A store over a database that the program has opened already.
func ExampleNew() {
	ctx := context.Background()
	opened, err := sqlite.Open(ctx, ":memory:")
	if err != nil {
		panic(err)
	}
	defer func() { _ = opened.Close() }()

	store, err := gormstore.New(ctx, opened.DB(), gormstore.Config{})
	fmt.Println(store != nil, err)
	// Output: true <nil>
}
