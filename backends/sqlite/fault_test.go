package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

func commitOf(id string, size int) backends.Commit {
	return backends.Commit{
		To:          backends.Cursor{MessageID: id},
		Observation: backends.Observation{Note: backends.Note{ID: "note-" + id, Text: "Note."}},
		Messages:    []backends.Message{{ID: id, Text: strings.Repeat("x", size)}},
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	ctx, key := context.Background(), backends.SessionKey{App: "app", User: "user", Session: "s"}
	t.Run("STO-4 a commit that no longer fits on the disk fails whole, and succeeds when there is room", func(t *testing.T) {
		t.Parallel()
		store := openFile(t, filepath.Join(t.TempDir(), "memory.db"))
		if err := store.DB().Exec("PRAGMA max_page_count = 60").Error; err != nil {
			t.Fatal(err)
		}
		_, err := store.Commit(ctx, key, commitOf("m", 1<<20))
		if err == nil || errors.Is(err, backends.ErrConflict) || strings.Contains(err.Error(), "xxxx") {
			t.Fatalf("error is %v", err)
		}
		snap, err := store.Load(ctx, key, backends.Stamp{})
		if err != nil || snap.Stamp != (backends.Stamp{}) || len(snap.Cursors) > 0 {
			t.Errorf("snapshot is %+v, %v", snap, err)
		}
		if err := store.DB().Exec("PRAGMA max_page_count = 100000").Error; err != nil {
			t.Fatal(err)
		}
		if _, err := store.Commit(ctx, key, commitOf("m", 1<<20)); err != nil {
			t.Error(err)
		}
	})
	t.Run("a writer that holds the file stops no reader, and a commit no longer than its context allows", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "memory.db")
		store, other := openFile(t, path), openFile(t, path)
		tx := other.DB().Begin()
		if tx.Error != nil {
			t.Fatal(tx.Error)
		}
		if _, err := store.Load(ctx, key, backends.Stamp{}); err != nil {
			t.Error(err)
		}
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		begin := time.Now()
		if _, err := store.Commit(short, key, commitOf("m", 1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
		if d := time.Since(begin); d > 4*time.Second {
			t.Errorf("the commit came back after %v", d)
		}
		committed := make(chan error)
		go func() {
			_, err := store.Commit(ctx, key, commitOf("m", 1))
			committed <- err
		}()
		if err := tx.Rollback().Error; err != nil {
			t.Fatal(err)
		}
		if err := <-committed; err != nil {
			t.Error(err)
		}
	})
}
