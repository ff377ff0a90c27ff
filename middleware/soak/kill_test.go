package soak

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/adksession"
	"github.com/adkmemory/adkmemory/backends/gormstore/gormtest"
	"github.com/adkmemory/adkmemory/backends/pgtest"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/observer"
)

// envKill names the point of an observation at which a child kills itself.
const envKill = "ADKMEMORY_KILL"

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// fatalStore dies at a point around or inside a commit.
type fatalStore struct {
	database
	point  string
	inside atomic.Bool // a commit is running
}

func (s *fatalStore) Commit(ctx context.Context, key backends.SessionKey, c backends.Commit) (backends.Observation, error) {
	if s.point == "before the commit" {
		die()
	}
	s.inside.Store(true)
	o, err := s.database.Commit(ctx, key, c)
	s.inside.Store(false)
	if s.point == "after the commit" && err == nil {
		die()
	}
	return o, err
}

type fatalObserver struct {
	observer.Observer
	point string
}

func (o fatalObserver) Observe(ctx context.Context, req observer.Request) (observer.Note, error) {
	if o.point == "before the model answers" {
		die()
	}
	return o.Observer.Observe(ctx, req)
}

// doomed talks in one session until the observation that kills it.
func doomed() int {
	ctx := context.Background()
	store, err := openDatabase(ctx, os.Getenv(envDSN))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fatal := &fatalStore{database: store, point: os.Getenv(envKill)}
	if _, n, ok := strings.Cut(fatal.point, "statement "); ok {
		last, _ := strconv.Atoi(n)
		statements := 0
		err := gormtest.After(store.DB(), func(*gorm.DB) {
			if fatal.inside.Load() {
				if statements++; statements == last {
					die()
				}
			}
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	sessions, err := adksession.New(ctx, store.DB(), adksession.Config{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	r, err := newReplicaOn(ctx, store, sessions, 200, middleware.Deps{
		Store:    fatal,
		Observer: fatalObserver{observer.NewExtractive(observer.ExtractiveConfig{}), fatal.point},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for n := range 40 {
		if err := r.say(ctx, sessionKey(0), fmt.Sprintf("Message %d says that parcel P%d goes to Lisbon on 2026-05-%02d and weighs %d kilograms.", n, n*7919, n%28+1, n)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if err := r.mem.Flush(ctx, sessionKey(0)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0 // the point was never reached
}

func TestKill(t *testing.T) {
	t.Parallel()
	points := []string{"before the model answers", "before the commit", "after the commit"}
	for n := 1; n <= 6; n++ {
		points = append(points, fmt.Sprintf("inside the commit, behind statement %d", n))
	}
	for _, point := range points {
		for backend, dsn := range map[string]func(*testing.T) string{
			"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "memory.db") },
			"postgres": func(t *testing.T) string { return pgtest.DSN(t) },
		} {
			t.Run("OBS-4 STO-4 killed "+point+" on "+backend, func(t *testing.T) {
				t.Parallel()
				dsn := dsn(t)
				cmd := exec.CommandContext(t.Context(), os.Args[0])
				cmd.Env = append(os.Environ(), envDSN+"="+dsn, envKill+"="+point)
				out, err := cmd.CombinedOutput()
				if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
					t.Fatalf("the child was not killed: %v\n%s", err, out)
				}
				store, err := openDatabase(t.Context(), dsn)
				if err != nil {
					t.Fatal(err)
				}
				gormtest.Age(t, store.DB(), time.Minute) // the dead process's lease runs out
				if err := store.Close(); err != nil {
					t.Fatal(err)
				}
				check(t, dsn, 1, 1)
			})
		}
	}
}
