package backendtest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/adkmemory/adkmemory/backends"
)

func runConcurrency(t *testing.T, open func(testing.TB) Harness) {
	main := backends.Stream{}
	// stores returns the store, and the same one as another process would have it where that is possible.
	stores := func(h Harness) []backends.Store {
		if h.Another == nil {
			return []backends.Store{h.Store}
		}
		return []backends.Store{h.Store, h.Another()}
	}
	const n = 16
	runAll(t, open, []scenario{
		{"STO-4 of many commits from one cursor exactly one wins, the first of a session included", func(t *testing.T, h Harness) {
			s, all := play(t, h.Store, keyOf("s")), stores(h)
			for round := range 4 {
				errs := together(n, func(i int) error {
					c := s.peek(main, 2)
					c.Observation.ID = fmt.Sprintf("round%d-%d", round, i)
					_, err := all[i%len(all)].Commit(ctx(), s.key, c)
					return err
				})
				expect(t, errs, 1)
				s.cursors[main] = s.peek(main, 2).To
			}
			got := s.state()
			same(t, "messages", ids(got.Messages, messageID), []string{"-m0", "-m1", "-m2", "-m3", "-m4", "-m5", "-m6", "-m7"})
			if len(got.Notes) != 4 {
				t.Errorf("%d notes", len(got.Notes))
			}
		}},
		{"REF-2 of many reflections over one source exactly one wins, beside commits", func(t *testing.T, h Harness) {
			s, all := play(t, h.Store, keyOf("s")), stores(h)
			s.observe(main, 1)
			s.observe(main, 1)
			c := s.peek(main, 1)
			c.Observation.ID = "beside"
			reflection := s.reflection(1, "note1", "note2")
			var committed error
			errs := together(n, func(i int) error {
				if i == 0 {
					_, committed = all[0].Commit(ctx(), s.key, c)
					return backends.ErrConflict // counted apart
				}
				r := reflection
				r.Reflection.ID = fmt.Sprintf("reflection%d", i)
				_, err := all[i%len(all)].Condense(ctx(), s.key, r)
				return err
			})
			expect(t, errs, 1)
			must(t, committed)
			got := s.state()
			if len(got.Snapshot.Observations) != 1 || len(got.Snapshot.Reflections) != 1 || len(got.Notes) != 4 {
				t.Errorf("state is %+v", got)
			}
		}},
		{"STO-3 a deletion wins over commits in flight, of sessions that exist and that do not", func(t *testing.T, h Harness) {
			all := stores(h)
			for round, remove := range []func(backends.Store, backends.SessionKey) error{
				func(s backends.Store, k backends.SessionKey) error { return s.DeleteSession(ctx(), k) },
				func(s backends.Store, k backends.SessionKey) error { return s.DeleteUser(ctx(), k.App, k.User) },
				func(s backends.Store, k backends.SessionKey) error { return s.DeleteApp(ctx(), k.App) },
			} {
				for _, written := range []bool{false, true} {
					s := play(t, h.Store, backends.SessionKey{App: fmt.Sprint("app", round, written), User: "user", Session: "s"})
					if written {
						s.observe(main, 1)
					}
					c := s.peek(main, 1)
					c.Epoch = s.load().Epoch
					errs := together(8, func(i int) error {
						if i == 0 {
							return remove(all[len(all)-1], s.key)
						}
						own := c
						own.Observation.ID = fmt.Sprintf("in flight %d", i)
						_, err := all[i%len(all)].Commit(ctx(), s.key, own)
						return err
					})
					must(t, errs[0])
					if got := s.state(); len(got.Notes)+len(got.Messages)+len(got.Snapshot.Cursors) > 0 {
						t.Errorf("round %d: %+v outlived the deletion", round, got)
					}
				}
			}
		}},
		{"STO-3 deletions and sweeps run beside each other and beside commits, and all succeed", func(t *testing.T, h Harness) {
			all := stores(h)
			key := func(i int) backends.SessionKey {
				return backends.SessionKey{App: "app", User: fmt.Sprint("user", i%5), Session: fmt.Sprint(i)}
			}
			for i := range 60 {
				c := play(t, h.Store, key(i)).commit(main, 2, "")
				_, err := h.Store.Commit(ctx(), key(i), c)
				must(t, err)
			}
			h.Age(2 * backends.TombstoneTTL)
			errs := together(n, func(i int) error {
				store := all[i%len(all)]
				switch i % 4 {
				case 0:
					_, err := store.Sweep(ctx(), backends.TombstoneTTL)
					return err
				case 1:
					return store.DeleteUser(ctx(), "app", fmt.Sprint("user", i%5))
				case 2:
					return store.DeleteApp(ctx(), "app")
				}
				for j := range 60 {
					snap, err := store.Load(ctx(), key(j), backends.Stamp{})
					if err != nil {
						return err
					}
					_, err = store.Commit(ctx(), key(j), commitFrom(snap, fmt.Sprint("beside", i), 1))
					if err != nil && !errors.Is(err, backends.ErrConflict) {
						return err
					}
				}
				return nil
			})
			must(t, errors.Join(errs...))
			must(t, h.Store.DeleteApp(ctx(), "app"))
			if h.Rows != nil {
				for table, rows := range h.Rows("app", "") {
					if rows != 0 {
						t.Errorf("%d rows are left in %s", rows, table)
					}
				}
			}
		}},
		{"many sessions are written at once", func(t *testing.T, h Harness) {
			all := stores(h)
			errs := together(n, func(i int) error {
				s := play(t, all[i%len(all)], keyOf(fmt.Sprint(i)))
				for range 5 {
					c := s.peek(main, 1)
					snap, err := s.store.Load(ctx(), s.key, backends.Stamp{})
					if err != nil {
						return err
					}
					c.Epoch, c.Observation.ID = snap.Epoch, fmt.Sprint(c.To.Index)
					if _, err := s.store.Commit(ctx(), s.key, c); err != nil {
						return err
					}
					s.cursors[main] = c.To
				}
				return nil
			})
			must(t, errors.Join(errs...))
			for i := range n {
				if got := play(t, h.Store, keyOf(fmt.Sprint(i))).load(); len(got.Observations) != 5 || got.Version != 5 {
					t.Errorf("session %d: %+v", i, got)
				}
			}
		}},
		{"one owner of many gets the lease", func(t *testing.T, h Harness) {
			all := stores(h)
			var mu sync.Mutex
			owners := 0
			errs := together(n, func(i int) error {
				held, err := all[i%len(all)].Lease(ctx(), keyOf("s"), fmt.Sprint("owner", i), 1e12)
				mu.Lock()
				defer mu.Unlock()
				if held {
					owners++
				}
				return err
			})
			must(t, errors.Join(errs...))
			if owners != 1 {
				t.Errorf("%d owners hold it", owners)
			}
		}},
	})
}

// peek is next without a note number, for use by several goroutines.
func (s *script) peek(stream backends.Stream, n int) backends.Commit {
	alone := &script{t: s.t, store: s.store, key: s.key, cursors: s.cursors}
	return alone.next(stream, n)
}

// together runs fn n times at once and returns what each said.
func together(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = fn(i)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

// expect checks that so many succeeded and all others met a conflict.
func expect(t testing.TB, errs []error, winners int) {
	t.Helper()
	for _, err := range errs {
		if err == nil {
			winners--
		} else if !errors.Is(err, backends.ErrConflict) {
			t.Error(err)
		}
	}
	if winners != 0 {
		t.Errorf("%d too few succeeded", winners)
	}
}
