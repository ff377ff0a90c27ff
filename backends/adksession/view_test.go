package adksession

import (
	"testing"

	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
)

// TestCacheUnderRaces steps through interleavings that a test from outside cannot force.
func TestCacheUnderRaces(t *testing.T) {
	t.Parallel()
	key := backends.SessionKey{App: "app", User: "user", Session: "session"}
	at := func(seq int64) stamp { return stamp{epoch: "e", lastSeq: seq} }
	items := func(first, last int64) (out []item) {
		for seq := first; seq <= last; seq++ {
			out = append(out, item{seq: seq, event: &session.Event{}})
		}
		return out
	}
	t.Run("CMP-5 a reader that is late gets the events of the state it has read", func(t *testing.T) {
		t.Parallel()
		c := newCache(1 << 20)
		c.extend(key, view{}, items(1, 5), 0, at(5))
		v, ok := c.get(key, at(3))
		if !ok || v.lastSeq != 3 || len(v.items) != 3 || cap(v.items) != 3 {
			t.Errorf("%d items up to %d, %v", len(v.items), v.lastSeq, ok)
		}
	})
	t.Run("CMP-5 of two readers that extend one state, both get all and the later state stays", func(t *testing.T) {
		t.Parallel()
		c := newCache(1 << 20)
		c.extend(key, view{}, items(1, 3), 0, at(3))
		base, _ := c.get(key, at(5))
		if got := c.extend(key, base, items(4, 5), 0, at(5)); len(got) != 5 {
			t.Errorf("first: %d items", len(got))
		}
		if got := c.extend(key, base, items(4, 4), 0, at(4)); len(got) != 4 || got[3].seq != 4 {
			t.Errorf("second: %d items", len(got))
		}
		if v, _ := c.get(key, at(5)); len(v.items) != 5 || v.lastSeq != 5 {
			t.Errorf("cached: %d items up to %d", len(v.items), v.lastSeq)
		}
	})
	t.Run("STO-4 another epoch or generation is not mixed in", func(t *testing.T) {
		t.Parallel()
		c := newCache(1 << 20)
		c.extend(key, view{}, items(1, 3), 0, at(3))
		for _, want := range []stamp{{epoch: "f", lastSeq: 3}, {epoch: "e", generation: 1, lastSeq: 3}} {
			if _, ok := c.get(key, want); ok {
				t.Errorf("%+v was found", want)
			}
		}
	})
}
