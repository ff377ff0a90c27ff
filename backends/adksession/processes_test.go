package adksession_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends/adksession"
)

const (
	childEnv   = "ADKSESSION_TEST_DATABASE"
	childTurns = 30
)

// child is the other process: it runs turns against the same database, retrying those that find the session stale.
func child(place string) {
	if err := childTurnsOn(context.Background(), place); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func childTurnsOn(ctx context.Context, place string) error {
	store, end, err := openStore(ctx, place)
	if err != nil {
		return err
	}
	defer func() { _ = end() }()
	s, err := adksession.New(ctx, store.DB(), adksession.Config{Reader: store.Reader()})
	if err != nil {
		return err
	}
	for n := range childTurns {
		if err := appendRetrying(ctx, s, event(n, fmt.Sprint("child", n), "child")); err != nil {
			return err
		}
	}
	return nil
}

// appendRetrying appends as a turn of its own, from the start again when somebody else's came between.
func appendRetrying(ctx context.Context, s *adksession.Service, e *session.Event) error {
	for {
		got, err := s.Get(ctx, getRequest())
		if err != nil {
			return err
		}
		err = s.AppendEvent(ctx, got.Session, e)
		if !errors.Is(err, adksession.ErrStale) {
			return err
		}
	}
}

func TestTwoProcesses(t *testing.T) { onEach(t, testTwoProcesses) }

func testTwoProcesses(t *testing.T, db database) {
	t.Run("CMP-5 two processes append to one session while a third compacts, and no event is lost", func(t *testing.T) {
		t.Parallel()
		path := db.make(t)
		s, compactor := openAt(t, path, adksession.Config{}), openAt(t, path, adksession.Config{})
		create(t, s)

		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+path)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// What a compaction deletes must have been seen by someone: collect the ids before each.
		seen := make(map[string]int)
		note := func(sess session.Session) {
			for _, id := range ids(sess) {
				if id != "summary" {
					seen[id] = 1
				}
			}
		}
		compacted := 0
		for n := range childTurns {
			if err := appendRetrying(t.Context(), s, event(1000+n, fmt.Sprint("parent", n), "parent")); err != nil {
				t.Fatal(err)
			}
			sess := get(t, compactor)
			note(sess)
			if last := sess.Events().Len() - 1; last > 0 {
				deleted, err := compactor.CompactMessages(t.Context(), testKey, last, sess.Events().At(last).ID, "so far")
				if err != nil && !isConflict(err) {
					t.Fatal(err)
				}
				compacted += deleted
			}
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err, stderr.String())
		}
		note(get(t, s))
		if len(seen) != 2*childTurns || compacted == 0 {
			t.Errorf("%d of %d events seen, %d compacted", len(seen), 2*childTurns, compacted)
		}
		// All views agree, with and without what their caches hold.
		want := ids(get(t, openAt(t, path, adksession.Config{})))
		if len(want) != 2*childTurns-compacted+1 {
			t.Errorf("%d events remain of %d after %d were compacted", len(want), 2*childTurns, compacted)
		}
		for _, service := range []*adksession.Service{s, compactor} {
			if got := ids(get(t, service)); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		}
	})
}
