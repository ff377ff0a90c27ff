package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/gormstore/gormtest"
	"github.com/adkmemory/adkmemory/backends/pgtest"
	"github.com/adkmemory/adkmemory/backends/postgres"
)

func sessionKey() backends.SessionKey {
	return backends.SessionKey{App: "app", User: "user", Session: "s"}
}

// observe commits the message after the session's cursor.
func observe(ctx context.Context, store backends.Store) error {
	snap, err := store.Load(ctx, sessionKey(), backends.Stamp{})
	if err != nil {
		return err
	}
	from := snap.Cursors[backends.Stream{}]
	id := fmt.Sprint("m", from.Next())
	_, err = store.Commit(ctx, sessionKey(), backends.Commit{
		Epoch: snap.Epoch, From: from, To: backends.Cursor{MessageID: id, Index: from.Next()},
		Observation: backends.Observation{Note: backends.Note{ID: "note-" + id, Text: "Note."}},
		Messages:    []backends.Message{{ID: id, Index: from.Next(), Text: "Message."}},
	})
	return err
}

// observed checks that n messages were observed, each exactly once.
func observed(t *testing.T, store backends.Store, n int) {
	t.Helper()
	messages, err := store.ListMessages(context.Background(), sessionKey(), backends.MessageQuery{})
	if err != nil {
		t.Fatal(err)
	}
	notes, err := store.ListNotes(context.Background(), sessionKey(), backends.NoteQuery{})
	if err != nil || len(messages) != n || len(notes) != n {
		t.Fatalf("%d messages and %d notes are stored, not %d: %v", len(messages), len(notes), n, err)
	}
	for i, m := range messages {
		if m.Index != int64(i) {
			t.Errorf("message %d has index %d", i, m.Index)
		}
	}
}

func TestServerStops(t *testing.T) {
	t.Parallel()
	if os.Getenv(pgtest.Env) == "off" {
		t.Skip(pgtest.Env + " is off")
	}
	ctx := context.Background()
	cluster, err := pgtest.NewCluster(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Remove() })
	// The cluster is set up to forget on a crash; this store's commits are to stay.
	store := open(t, pgtest.With(cluster.DSN(), "synchronous_commit", "on"))
	t.Run("STO-4 what was committed before the server stopped is there when it is back, and no call hangs meanwhile", func(t *testing.T) {
		for round := range 3 {
			if err := observe(ctx, store); err != nil {
				t.Fatal(err)
			}
			if err := cluster.Stop(); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if err := observe(ctx, store); err == nil || errors.Is(err, backends.ErrConflict) {
					t.Fatalf("a commit without a server: %v", err)
				}
			}
			if err := cluster.Start(ctx); err != nil {
				t.Fatal(err)
			}
			observed(t, store, round+1)
		}
	})
}

func TestConnectionsAreCut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dsn := pgtest.DSN(t)
	admin, store := open(t, dsn), open(t, dsn)
	var left atomic.Int64 // statements until the next cut; negative: none
	left.Store(-1)
	pid := 0
	identify := func(tx *gorm.DB) {
		if left.Load() == 1 {
			left.Store(0) // not for this query
			tx.Session(&gorm.Session{NewDB: true}).Raw("SELECT pg_backend_pid()").Scan(&pid)
			left.Store(1)
		}
	}
	cut := func(*gorm.DB) {
		if left.Add(-1) != 0 {
			return
		}
		if err := admin.DB().Exec("SELECT pg_terminate_backend(?, 10000)", pid).Error; err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(gormtest.Before(store.DB(), identify), gormtest.After(store.DB(), cut)); err != nil {
		t.Fatal(err)
	}
	t.Run("STO-4 a commit whose connection is cut at any statement fails whole, and the next one succeeds", func(t *testing.T) {
		done := 0
		for point := int64(1); ; point++ {
			left.Store(point)
			err := observe(ctx, store)
			if left.Swap(-1) > 0 { // there were fewer statements than that
				if err != nil {
					t.Fatal(err)
				}
				if point < 6 {
					t.Errorf("a commit was cut at %d points only", point-1)
				}
				observed(t, store, done+1)
				return
			}
			if err == nil {
				t.Fatalf("cut after statement %d, but there is no error", point)
			}
			observed(t, store, done)
			if err := observe(ctx, store); err != nil {
				t.Fatalf("after the cut: %v", err)
			}
			done++
		}
	})
}

func TestSlowServer(t *testing.T) {
	t.Parallel()
	store := open(t, pgtest.DSN(t))
	if err := observe(context.Background(), store); err != nil {
		t.Fatal(err)
	}
	var slow atomic.Bool
	err := gormtest.Before(store.DB(), func(tx *gorm.DB) {
		if slow.CompareAndSwap(true, false) {
			_ = tx.AddError(tx.Session(&gorm.Session{NewDB: true}).Exec("SELECT pg_sleep(60)").Error)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("STO-4 a deadline ends a call that waits for the server, and nothing is written", func(t *testing.T) {
		slow.Store(true)
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		begin := time.Now()
		if err := observe(ctx, store); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
		if d := time.Since(begin); d > 30*time.Second {
			t.Errorf("the call took %v", d)
		}
		observed(t, store, 1)
		if err := observe(context.Background(), store); err != nil {
			t.Error(err)
		}
		observed(t, store, 2)
	})
}

// TestDeletionWaits holds a session's first commit between its statements, where a deletion cannot see its row yet.
func TestDeletionWaits(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(context.Context, *postgres.Store) error{
		"user": func(ctx context.Context, s *postgres.Store) error { return s.DeleteUser(ctx, "app", "user") },
		"app":  func(ctx context.Context, s *postgres.Store) error { return s.DeleteApp(ctx, "app") },
	} {
		t.Run("STO-3 a deletion of the "+name+" waits for first commits, and removes what they wrote", func(t *testing.T) {
			t.Parallel()
			ctx, dsn := context.Background(), pgtest.DSN(t)
			committer, deleter := open(t, dsn), open(t, dsn)
			reached, goOn := make(chan struct{}), make(chan struct{})
			var statements atomic.Int64
			err := gormtest.After(committer.DB(), func(tx *gorm.DB) {
				if tx.Statement.Table == "adkmemory_notes" && statements.Add(1) == 1 {
					close(reached)
					<-goOn
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			committed, removed := make(chan error, 1), make(chan error, 1)
			go func() { committed <- commitFirst(ctx, committer) }()
			<-reached
			go func() { removed <- remove(ctx, deleter) }()
			for waiting := false; !waiting && len(removed) == 0; {
				err := deleter.DB().Raw("SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").Scan(&waiting).Error
				if err != nil {
					t.Fatal(err)
				}
			}
			close(goOn)
			if err := errors.Join(<-committed, <-removed); err != nil {
				t.Fatal(err)
			}
			observed(t, deleter, 0)
		})
	}
}

// commitFirst commits without loading, so that the first statement that it runs on notes is the insert.
func commitFirst(ctx context.Context, store backends.Store) error {
	_, err := store.Commit(ctx, sessionKey(), backends.Commit{
		To:          backends.Cursor{MessageID: "m"},
		Observation: backends.Observation{Note: backends.Note{ID: "note", Text: "Note."}},
		Messages:    []backends.Message{{ID: "m", Text: "Message."}},
	})
	return err
}
