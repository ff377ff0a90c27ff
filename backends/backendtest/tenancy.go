package backendtest

import (
	"reflect"
	"testing"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

// probe calls one method of a store for a session and returns what it found there, if anything.
type probe func(t testing.TB, s *script) any

// probes holds a call of every method that takes a key, an app or a user, made as one who knows the ids of another
// tenant's notes and messages, and that session's epoch and cursor, would make it.
func probes(victim *script) map[string]probe {
	snap := victim.load()
	refuse := func(t testing.TB, what string, err error) {
		t.Helper()
		is(t, what+" with another tenant's epoch", err, backends.ErrConflict)
	}
	return map[string]probe{
		"Load": func(t testing.TB, s *script) any {
			got, err := s.store.Load(ctx(), s.key, snap.Stamp)
			must(t, err)
			if got == nil {
				return "the stamp is taken for this session's"
			}
			return append(ids(got.Observations, observationID), ids(got.Reflections, reflectionID)...)
		},
		"Commit": func(t testing.TB, s *script) any {
			c := victim.next(backends.Stream{}, 1)
			_, err := s.store.Commit(ctx(), s.key, c)
			refuse(t, "Commit", err)
			c.Epoch, c.From, c.Observation.ID = s.load().Epoch, backends.Cursor{}, snap.Observations[0].ID
			c.Messages[0].ID = "-m0"
			_, err = s.store.Commit(ctx(), s.key, c)
			must(t, err)
			return nil
		},
		"Condense": func(t testing.TB, s *script) any {
			c := victim.reflection(1, snap.Observations[0].ID)
			_, err := s.store.Condense(ctx(), s.key, c)
			refuse(t, "Condense", err)
			s.observe(backends.Stream{Branch: "b"}, 1)
			c.Epoch = s.load().Epoch
			_, err = s.store.Condense(ctx(), s.key, c)
			refuse(t, "Condense of another tenant's notes, and", err)
			return nil
		},
		"RebaseCursor": func(t testing.TB, s *script) any {
			err := s.store.RebaseCursor(ctx(), s.key, snap.Epoch, backends.Stream{}, victim.cursors[backends.Stream{}])
			refuse(t, "RebaseCursor", err)
			return nil
		},
		"ListRecentObservations": func(t testing.TB, s *script) any {
			got, err := s.store.ListRecentObservations(ctx(), s.key, 0)
			must(t, err)
			return ids(got, observationID)
		},
		"ListRecentReflections": func(t testing.TB, s *script) any {
			got, err := s.store.ListRecentReflections(ctx(), s.key, 0)
			must(t, err)
			return ids(got, reflectionID)
		},
		"ListSessions": func(t testing.TB, s *script) any {
			got, err := s.store.ListSessions(ctx(), backends.SessionQuery{App: s.key.App, User: s.key.User, Contains: victim.key.Session})
			must(t, err)
			var found []backends.SessionKey
			for _, info := range got {
				if info.Key.App != s.key.App || info.Key.User != s.key.User {
					found = append(found, info.Key)
				}
			}
			return found
		},
		"ListMessages": func(t testing.TB, s *script) any {
			all, err := s.store.ListMessages(ctx(), s.key, backends.MessageQuery{})
			must(t, err)
			some, err := s.store.ListMessages(ctx(), s.key, backends.MessageQuery{ObservationID: snap.Observations[0].ID})
			must(t, err)
			return append(all, some...)
		},
		"ListNotes": func(t testing.TB, s *script) any {
			all, err := s.store.ListNotes(ctx(), s.key, backends.NoteQuery{})
			must(t, err)
			some, err := s.store.ListNotes(ctx(), s.key, backends.NoteQuery{IDs: []string{snap.Observations[0].ID}})
			must(t, err)
			return append(all, some...)
		},
		"DeleteObservationsBySession": func(t testing.TB, s *script) any {
			must(t, s.store.DeleteObservationsBySession(ctx(), s.key))
			return nil
		},
		"DeleteReflectionsBySession": func(t testing.TB, s *script) any {
			must(t, s.store.DeleteReflectionsBySession(ctx(), s.key))
			return nil
		},
		"DeleteSession": func(t testing.TB, s *script) any {
			must(t, s.store.DeleteSession(ctx(), s.key))
			return nil
		},
		"DeleteUser": func(t testing.TB, s *script) any {
			if s.key.App != victim.key.App || s.key.User != victim.key.User {
				must(t, s.store.DeleteUser(ctx(), s.key.App, s.key.User))
			}
			return nil
		},
		"DeleteApp": func(t testing.TB, s *script) any {
			if s.key.App != victim.key.App {
				must(t, s.store.DeleteApp(ctx(), s.key.App))
			}
			return nil
		},
		"Lease": func(t testing.TB, s *script) any {
			if held, err := s.store.Lease(ctx(), s.key, "intruder", time.Hour); err != nil || !held {
				t.Errorf("Lease = %v, %v", held, err)
			}
			return nil
		},
		"Release": func(t testing.TB, s *script) any {
			must(t, s.store.Release(ctx(), s.key, "victim"))
			return nil
		},
		"AppendMessages": func(t testing.TB, s *script) any {
			if appender, ok := s.store.(backends.Appender); ok {
				n, err := appender.AppendMessages(ctx(), s.key, backends.Stream{}, []backends.Message{message(backends.Stream{}, 0)})
				if err != nil || n != 1 {
					t.Errorf("AppendMessages of an id that another tenant has = %d, %v", n, err)
				}
			}
			return nil
		},
		"Sweep": nil, // takes no tenant: what it spares is in the area Delete
		"Close": nil,
	}
}

func runTenancy(t *testing.T, open func(testing.TB) Harness) {
	t.Run("SEC-1 every method of the store is probed", func(t *testing.T) {
		t.Parallel()
		h := open(t)
		victim := play(t, h.Store, keyOf("s"))
		victim.observe(backends.Stream{}, 1)
		known := probes(victim)
		for _, role := range []reflect.Type{reflect.TypeFor[backends.Store](), reflect.TypeFor[backends.Appender]()} {
			for i := range role.NumMethod() {
				if name := role.Method(i).Name; !has(known, name) {
					t.Errorf("%s.%s has no probe", role.Name(), name)
				}
			}
		}
	})
	for name, other := range map[string]func(backends.SessionKey) backends.SessionKey{
		"session":           func(k backends.SessionKey) backends.SessionKey { k.Session = "other"; return k },
		"user":              func(k backends.SessionKey) backends.SessionKey { k.User = "other"; return k },
		"app":               func(k backends.SessionKey) backends.SessionKey { k.App = "other"; return k },
		"app's case":        func(k backends.SessionKey) backends.SessionKey { k.App = "A/B"; return k },
		"part of a session": func(k backends.SessionKey) backends.SessionKey { k.Session = "sessio"; return k },
		"trailing space":    func(k backends.SessionKey) backends.SessionKey { k.Session += " "; return k },
		"same parts joined": func(k backends.SessionKey) backends.SessionKey { k.App, k.User = "a", "b/"+k.User; return k },
		"wildcards": func(backends.SessionKey) backends.SessionKey {
			return backends.SessionKey{App: "%", User: "%", Session: "%"}
		},
		"swapped parts":     func(k backends.SessionKey) backends.SessionKey { k.App, k.User = k.User, k.App; return k },
		"decomposed letter": func(k backends.SessionKey) backends.SessionKey { k.User = "u\u0308" + k.User[2:]; return k },
	} {
		t.Run("another "+name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			for _, method := range methods() {
				t.Run("SEC-1 "+method+" neither shows nor changes another tenant's rows", func(t *testing.T) {
					owner := backends.SessionKey{App: "a/b", User: "\u00fc" + method, Session: "session"}
					victim := play(t, h.Store, owner)
					for range 3 {
						victim.observe(backends.Stream{}, 2)
					}
					victim.condense(1, "note1")
					if held, err := h.Store.Lease(ctx(), owner, "victim", time.Hour); err != nil || !held {
						t.Fatalf("Lease = %v, %v", held, err)
					}
					call := probes(victim)[method]
					intruder := play(t, h.Store, other(owner))
					intruder.notes = 1000
					must(t, h.Store.DeleteSession(ctx(), intruder.key)) // what an earlier method left there
					victim.unchanged(func() {
						if found := call(t, intruder); found != nil && reflect.ValueOf(found).Len() > 0 {
							t.Errorf("%v are shown", found)
						}
					})
					if held, err := h.Store.Lease(ctx(), owner, "intruder", time.Hour); err != nil || held {
						t.Errorf("the lease is gone: %v, %v", held, err)
					}
				})
			}
		})
	}
}

// methods returns the names of the probes.
func methods() []string {
	return []string{
		"Load", "Commit", "Condense", "RebaseCursor", "ListRecentObservations", "ListRecentReflections", "ListSessions",
		"ListMessages", "ListNotes", "DeleteObservationsBySession", "DeleteReflectionsBySession", "DeleteSession",
		"DeleteUser", "DeleteApp", "Lease", "Release", "AppendMessages",
	}
}

func has[V any](m map[string]V, key string) bool {
	_, ok := m[key]
	return ok
}
