package soak

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends/gormstore/gormtest"
	"github.com/adkmemory/adkmemory/backends/pgtest"
	"github.com/adkmemory/adkmemory/middleware"
)

// talk holds a conversation of n turns; every turn must succeed whatever the memory's database does.
func talk(t *testing.T, r *replica, from, n int) {
	t.Helper()
	for i := from; i < from+n; i++ {
		text := fmt.Sprintf("Message %d says that parcel P%d goes to Lisbon on 2026-05-%02d and weighs %d kilograms.", i, i*7919, i%28+1, i)
		if err := r.say(t.Context(), sessionKey(0), text); err != nil {
			t.Fatalf("turn %d: %v", i, err)
		}
	}
}

// flush waits for the background, which may have to wait for a lease.
func flush(t *testing.T, r *replica) {
	t.Helper()
	if err := r.mem.Flush(t.Context(), sessionKey(0)); err != nil {
		t.Fatal(err)
	}
}

// faulty is a replica whose sessions live in memory, so that only the memory's database has the fault. Its threshold is
// one token: once the fault is over, the last turn observes all that is left.
func faulty(t *testing.T, dsn string) *replica {
	t.Helper()
	store, err := openDatabase(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	r, err := newReplicaOn(t.Context(), store, session.InMemoryService(), 1, middleware.Deps{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.close(context.Background()) })
	return r
}

func TestFault(t *testing.T) {
	t.Parallel()

	t.Run("OPS-2 ADP-3 a server that is stopped and started again", func(t *testing.T) {
		t.Parallel()
		cluster, err := pgtest.NewCluster(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cluster.Remove() })
		r := faulty(t, pgtest.With(cluster.DSN(), "synchronous_commit", "on")) // what is committed survives the crash
		talk(t, r, 0, 5)
		if err := cluster.Stop(); err != nil {
			t.Fatal(err)
		}
		talk(t, r, 5, 5)
		if s := r.mem.Stats(); s.LoadFailures == 0 {
			t.Errorf("stats: %+v", s)
		}
		if err := cluster.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		flush(t, r)
		talk(t, r, 10, 5)
		checkSession(t, r, sessionKey(0))
	})

	t.Run("OPS-2 ADP-3 connections that are cut", func(t *testing.T) {
		t.Parallel()
		dsn := pgtest.DSN(t)
		r, admin := faulty(t, pgtest.With(dsn, "application_name", "cut-me")), faulty(t, dsn)
		for i := range 6 {
			talk(t, r, i, 1)
			if err := admin.store.DB().Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cut-me'").Error; err != nil {
				t.Fatal(err)
			}
		}
		flush(t, r)
		checkSession(t, r, sessionKey(0))
	})

	for backend, dsn := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "memory.db") },
		"postgres": func(t *testing.T) string { return pgtest.DSN(t) },
	} {
		t.Run("OPS-2 ADP-3 a database slower than the turn's deadline, on "+backend, func(t *testing.T) {
			t.Parallel()
			r := faulty(t, dsn(t))
			var slow atomic.Bool
			for _, db := range handles(r.store) {
				err := gormtest.Before(db, func(tx *gorm.DB) {
					if slow.Load() {
						<-tx.Statement.Context.Done() // answers only when nobody waits any more
					}
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			talk(t, r, 0, 3)
			flush(t, r)
			slow.Store(true)
			start := time.Now()
			talk(t, r, 3, 2)
			if s := r.mem.Stats(); s.LoadFailures == 0 || time.Since(start) > 20*time.Second {
				t.Errorf("%v for two turns, stats: %+v", time.Since(start), s)
			}
			slow.Store(false)
			talk(t, r, 5, 3)
			flush(t, r)
			checkSession(t, r, sessionKey(0))
		})
	}

	t.Run("OPS-2 ADP-3 a full disk", func(t *testing.T) {
		t.Parallel()
		r := faulty(t, filepath.Join(t.TempDir(), "memory.db"))
		talk(t, r, 0, 3)
		flush(t, r)
		var pages int
		if err := r.store.DB().Raw("PRAGMA page_count").Scan(&pages).Error; err != nil {
			t.Fatal(err)
		}
		limit := func(n int) {
			if err := r.store.DB().Exec(fmt.Sprintf("PRAGMA max_page_count = %d", n)).Error; err != nil {
				t.Fatal(err)
			}
		}
		limit(pages + 2)
		for i := 3; r.mem.Stats().ObserveFailures == 0; i++ {
			talk(t, r, i, 1)
			flush(t, r)
			if i > 200 {
				t.Fatal("the disk never filled up")
			}
		}
		limit(1 << 30)
		talk(t, r, 1000, 2)
		flush(t, r)
		checkSession(t, r, sessionKey(0))
	})
}

// handles are all the handles of a store.
func handles(store database) []*gorm.DB {
	all := []*gorm.DB{store.DB()}
	if s, ok := store.(interface{ Reader() *gorm.DB }); ok && s.Reader() != store.DB() {
		all = append(all, s.Reader())
	}
	return all
}
