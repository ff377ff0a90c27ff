package middleware

import (
	"sync"

	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/prompt"
	"github.com/adkmemory/adkmemory/middleware/window"
)

// sessionState is what this process remembers of a session between two calls: the store's snapshot, and how far the
// session's events were read. All of it can be rebuilt from the store and the events.
type sessionState struct {
	mu         sync.Mutex
	snap       *backends.Snapshot // as last loaded
	applied    *backends.Snapshot // whose cursors streams holds
	seen       int                // events read
	lastID     string             // of the last one
	since      int                // tokens read since the last trigger
	generation int                // changes when events or cursors went back
	model      model.LLM          // of the newest call, unwrapped
	streams    map[backends.Stream]*streamState
	views      map[window.View]*viewState

	turns           []TurnRecord            // the last ones, oldest first
	failures        int                     // triggers in a row whose note a model failed to write
	reflectFailures int                     // the same for reflections
	unshrunk        map[backends.Stream]int // observation tokens when a reflection over them was refused
	unshrunkMR      map[backends.Stream]int // the same for reflections
}

// streamState is the position of a stream's cursor among the events, and what comes after it.
type streamState struct {
	cursor  backends.Cursor
	last    int // index of the last observed event; -1 for none
	pending int // tokens of the messages after it
}

// viewState belongs to one agent within the session.
type viewState struct {
	cut     window.Cut
	memo    memo
	forcing bool // the last request had messages forced out
	section prompt.Section
	shown   []backends.Note // cache-friendly layout: headers of the notes it was made from, by Seq within each kind
	stamp   backends.Stamp  // the snapshot that section was made from
	tail    int             // cache-friendly layout: the event where the tail began when section was made
	fresh   bool            // whether section was ever made
}

func newSessionState() *sessionState {
	return &sessionState{
		streams:    make(map[backends.Stream]*streamState),
		views:      make(map[window.View]*viewState),
		unshrunk:   make(map[backends.Stream]int),
		unshrunkMR: make(map[backends.Stream]int),
	}
}

// observed reports whether a note covers the event at index i.
func (s *sessionState) observed(events window.Events, i int) bool {
	if i >= s.seen {
		return false
	}
	st := s.streams[window.StreamOf(events.At(i))]
	return st != nil && i <= st.last
}

func (s *sessionState) view(v window.View) *viewState {
	vs := s.views[v]
	if vs == nil {
		vs = &viewState{}
		s.views[v] = vs
	}
	return vs
}

// pending is the number of un-observed tokens of all streams.
func (s *sessionState) pending() int {
	total := 0
	for _, st := range s.streams {
		total += st.pending
	}
	return total
}

// sync reads the events that came since the last call and takes over the snapshot's cursors. Its work is proportional
// to what is new, unless events were removed or replaced: then it begins anew. It returns the first event it read.
func (s *sessionState) sync(events window.Events, snap *backends.Snapshot, tokens func(*session.Event) int) int {
	n := events.Len()
	if s.seen > n || s.seen > 0 && eventID(events, s.seen-1) != s.lastID {
		s.seen = 0
		s.generation++
		clear(s.streams)
	}
	if s.seen == 0 {
		s.locate(events, snap)
	}
	read := s.seen
	for i := read; i < n; i++ {
		e := events.At(i)
		if !window.IsMessage(e) {
			continue
		}
		if st := s.stream(window.StreamOf(e)); i > st.last {
			t := tokens(e)
			st.pending += t
			s.since += t
		}
	}
	s.seen, s.lastID = n, eventID(events, n-1)
	s.snap = snap
	if s.applied != snap {
		s.applied = snap
		for stream, st := range s.streams {
			if c := snap.Cursors[stream]; !c.Equal(st.cursor) {
				s.move(events, stream, c, tokens)
			}
		}
	}
	return read
}

// erased forgets what was made of notes that are gone, and reports whether any were: the session was deleted since. A
// first epoch without a cursor is a deletion's as well; one with a cursor is the first commit's.
func (s *sessionState) erased(snap *backends.Snapshot) bool {
	if s.applied == nil || s.applied.Epoch == snap.Epoch || s.applied.Epoch == "" && len(snap.Cursors) > 0 {
		return false
	}
	clear(s.views)
	clear(s.unshrunk)
	clear(s.unshrunkMR)
	s.turns = nil
	s.generation++
	return true
}

// locate finds the cursors among the events before anything of them was read.
func (s *sessionState) locate(events window.Events, snap *backends.Snapshot) {
	s.applied = snap
	for stream, c := range snap.Cursors {
		s.streams[stream] = &streamState{cursor: c, last: find(events, stream, c, 0)}
	}
}

// move sets a stream's cursor and counts anew what comes after it.
func (s *sessionState) move(events window.Events, stream backends.Stream, c backends.Cursor, tokens func(*session.Event) int) {
	st := s.stream(stream)
	before := st.last
	st.last = find(events, stream, c, before+1)
	if st.last < before {
		s.generation++
	}
	st.cursor, st.pending = c, 0
	for i := st.last + 1; i < s.seen; i++ {
		if e := events.At(i); window.IsMessage(e) && window.StreamOf(e) == stream {
			st.pending += tokens(e)
		}
	}
}

func (s *sessionState) stream(stream backends.Stream) *streamState {
	st := s.streams[stream]
	if st == nil {
		st = &streamState{last: -1}
		s.streams[stream] = st
	}
	return st
}

// find returns the index of the last event that the cursor covers, -1 for none. It looks for the cursor's id, from hint
// on and then before it. When the id is gone (ids replaced on reload, a compaction, an in-memory session that vanished)
// everything up to the cursor's time is covered; among events of that very microsecond the fingerprint decides. Contents
// without an ADK session have no times: there the fingerprint alone decides.
func find(events window.Events, stream backends.Stream, c backends.Cursor, hint int) int {
	if c.IsZero() {
		return -1
	}
	for i := hint; i < events.Len(); i++ {
		if eventID(events, i) == c.MessageID {
			return i
		}
	}
	for i := min(hint, events.Len()) - 1; i >= 0; i-- {
		if eventID(events, i) == c.MessageID {
			return i
		}
	}
	if own, ok := events.(contentEvents); ok {
		return own.find(c.Fingerprint)
	}
	last, at := -1, c.Time.Truncate(backends.TimePrecision)
	for i := range events.Len() {
		e := events.At(i)
		if !window.IsMessage(e) || window.StreamOf(e) != stream {
			continue
		}
		if e.Timestamp.IsZero() {
			if fingerprint(e) == c.Fingerprint {
				return i
			}
			continue
		}
		t := e.Timestamp.Truncate(backends.TimePrecision)
		if t.After(at) {
			break
		}
		last = i
		if t.Equal(at) && fingerprint(e) == c.Fingerprint {
			break
		}
	}
	return last
}

func eventID(events window.Events, i int) string {
	if i < 0 {
		return ""
	}
	if e := events.At(i); e != nil {
		return e.ID
	}
	return ""
}
