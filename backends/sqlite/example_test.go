package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/sqlite"
)

func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "adkmemory")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	store, err := sqlite.Open(ctx, filepath.Join(dir, "memory.db"))
	if err != nil {
		panic(err)
	}
	defer func() { _ = store.Close() }()

	key := backends.SessionKey{App: "shop", User: "ada", Session: "1"}
	_, err = store.Commit(ctx, key, backends.Commit{
		To:          backends.Cursor{MessageID: "m2", Index: 1},
		Observation: backends.Observation{Note: backends.Note{ID: "o1", Text: "Ada wants the blue one.", Tokens: 6}},
		Messages:    []backends.Message{{ID: "m1", Text: "Which colours?"}, {ID: "m2", Text: "The blue one."}},
	})
	if err != nil {
		panic(err)
	}
	snapshot, err := store.Load(ctx, key, backends.Stamp{})
	if err != nil {
		panic(err)
	}
	fmt.Println(snapshot.Observations[0].Text)
	// Output: Ada wants the blue one.
}
