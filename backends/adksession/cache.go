package adksession

import (
	"container/list"
	"math"
	"slices"
	"sync"

	"github.com/adkmemory/adkmemory/backends"
)

// beforeAll is the sequence number to read after when nothing is known. Summaries may have numbers below 1.
const beforeAll = math.MinInt64

// sessionSize estimates what the cache holds of a session beside its events.
const sessionSize = 512

// view is a session's events in one state. Its items are shared: they are never written to, only appended to, and that
// by the cache alone, under its lock, beyond the length of every view it has handed out.
type view struct {
	stamp
	items []item
	size  int
}

func (v view) afterSeq() int64 {
	if v.epoch == "" {
		return beforeAll
	}
	return v.lastSeq
}

// upTo returns v as it was when seq was the newest event.
func (v view) upTo(seq int64) view {
	n := len(v.items)
	for n > 0 && v.items[n-1].seq > seq {
		n--
	}
	v.items, v.lastSeq = v.items[:n:n], seq
	return v
}

// cache keeps decoded events of the sessions used last, up to a number of bytes. It is a cache of immutable facts: a
// stamp that the database has just reported decides whether a view may be used.
type cache struct {
	max int

	mu       sync.Mutex
	sessions map[backends.SessionKey]*list.Element
	recent   list.List // of *cached, most recently used first
	size     int
}

type cached struct {
	key backends.SessionKey
	view
	cost int
}

func newCache(maxBytes int) *cache {
	return &cache{max: maxBytes, sessions: make(map[backends.SessionKey]*list.Element)}
}

// get returns the newest view that the state want is equal to or follows.
func (c *cache) get(key backends.SessionKey, want stamp) (view, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	el := c.sessions[key]
	if el == nil {
		return view{}, false
	}
	have := el.Value.(*cached).view
	switch {
	case want.follows(have.stamp):
		c.recent.MoveToFront(el)
		return have.upTo(have.lastSeq), true
	case have.follows(want): // another reader was quicker
		return have.upTo(want.lastSeq), true
	}
	return view{}, false
}

// extend returns the items of base followed by fresh ones, which bring it to the state now, and remembers them.
func (c *cache) extend(key backends.SessionKey, base view, fresh []item, size int, now stamp) []item {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := view{stamp: now, size: base.size + size}
	if el := c.sessions[key]; el != nil && el.Value.(*cached).stamp == base.stamp {
		next.items = append(el.Value.(*cached).items, fresh...)
	} else {
		next.items = slices.Concat(base.items, fresh)
	}
	c.putLocked(key, next)
	return next.upTo(now.lastSeq).items
}

// put remembers a view, unless the cache holds a later one of the same events.
func (c *cache) put(key backends.SessionKey, v view) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.putLocked(key, v)
}

func (c *cache) putLocked(key backends.SessionKey, v view) {
	el := c.sessions[key]
	if el != nil && el.Value.(*cached).follows(v.stamp) && el.Value.(*cached).lastSeq > v.lastSeq {
		return
	}
	if el != nil {
		c.remove(el)
	}
	cost := v.size + sessionSize
	if cost > c.max {
		return
	}
	c.sessions[key] = c.recent.PushFront(&cached{key: key, view: v, cost: cost})
	c.size += cost
	for c.size > c.max {
		c.remove(c.recent.Back())
	}
}

// appendable returns the cached view if seq is its newest event.
func (c *cache) appendable(key backends.SessionKey, epoch string, seq int64) (view, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	el := c.sessions[key]
	if el == nil {
		return view{}, false
	}
	have := el.Value.(*cached).view
	return have, have.epoch == epoch && have.lastSeq == seq
}

func (c *cache) drop(key backends.SessionKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el := c.sessions[key]; el != nil {
		c.remove(el)
	}
}

// remove forgets a session. The caller holds mu.
func (c *cache) remove(el *list.Element) {
	e := c.recent.Remove(el).(*cached)
	delete(c.sessions, e.key)
	c.size -= e.cost
}
