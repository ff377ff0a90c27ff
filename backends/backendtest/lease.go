package backendtest

import (
	"testing"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

func runLease(t *testing.T, open func(testing.TB) Harness) {
	lease := func(t testing.TB, s backends.Store, key backends.SessionKey, owner string, want bool) {
		t.Helper()
		if held, err := s.Lease(ctx(), key, owner, time.Minute); err != nil || held != want {
			t.Errorf("Lease(%v) for %s = %v, %v", key, owner, held, err)
		}
	}
	runAll(t, open, []scenario{
		{"one owner holds it, renews it and gives it up", func(t *testing.T, h Harness) {
			key := keyOf("s")
			lease(t, h.Store, key, "a", true)
			lease(t, h.Store, key, "b", false)
			lease(t, h.Store, key, "a", true)
			must(t, h.Store.Release(ctx(), key, "b"))
			lease(t, h.Store, key, "b", false)
			must(t, h.Store.Release(ctx(), key, "a"))
			lease(t, h.Store, key, "b", true)
			lease(t, h.Store, key, "a", false)
			lease(t, h.Store, keyOf("other"), "a", true)
		}},
		{"it expires by the store's clock, and a renewal counts from then", func(t *testing.T, h Harness) {
			key := keyOf("s")
			lease(t, h.Store, key, "a", true)
			h.Age(50 * time.Second)
			lease(t, h.Store, key, "b", false)
			lease(t, h.Store, key, "a", true)
			h.Age(50 * time.Second)
			lease(t, h.Store, key, "b", false)
			h.Age(15 * time.Second)
			lease(t, h.Store, key, "b", true)
			lease(t, h.Store, key, "a", false)
		}},
		{"it is seen by another process", func(t *testing.T, h Harness) {
			if h.Another == nil {
				t.Skip("the store lives in one process")
			}
			other := h.Another()
			lease(t, h.Store, keyOf("s"), "a", true)
			lease(t, other, keyOf("s"), "b", false)
			must(t, h.Store.Release(ctx(), keyOf("s"), "a"))
			lease(t, other, keyOf("s"), "b", true)
		}},
		{"it is no write of the session", func(t *testing.T, h Harness) {
			s := play(t, h.Store, keyOf("s"))
			s.observe(backends.Stream{}, 1)
			s.unchanged(func() { lease(t, h.Store, s.key, "a", true) })
			lease(t, h.Store, keyOf("never written"), "a", true)
			same(t, "snapshot", play(t, h.Store, keyOf("never written")).load(), &backends.Snapshot{})
		}},
		{"Sweep removes expired ones only", func(t *testing.T, h Harness) {
			lease(t, h.Store, keyOf("old"), "a", true)
			h.Age(2 * time.Minute)
			lease(t, h.Store, keyOf("new"), "a", true)
			_, err := h.Store.Sweep(ctx(), 0)
			must(t, err)
			lease(t, h.Store, keyOf("new"), "b", false)
			if h.Rows != nil {
				if n := h.Rows("app", "user")["adkmemory_leases"]; n != 1 {
					t.Errorf("%d leases are left", n)
				}
			}
		}},
	})
}
