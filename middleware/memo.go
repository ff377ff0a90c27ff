package middleware

import (
	"slices"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/middleware/window"
)

// memo remembers of an agent's last request which contents before the tail were kept, so that the next one, which ADK
// builds from the same events and some new ones, needs to be looked at from the tail on only. The history dropped before
// never comes back: its length then costs nothing.
type memo struct {
	valid      bool
	generation int    // of the session's state
	events     int    // of the session
	lastID     string // of the last of them
	start      int    // the content where the tail began
	kept       []int  // contents before it that were kept
	sources    window.Sources
}

// mapped is a request's contents, or those of them that matter, with their events.
type mapped struct {
	contents []*genai.Content
	index    []int // of each content in the request; nil when it is all of them
	sources  window.Sources
}

func (p mapped) at(i int) int {
	if p.index == nil {
		return i
	}
	return p.index[i]
}

// mapContents finds the events behind a request's contents. The caller holds the session's lock.
func (m *Middleware) mapContents(c call, s *sessionState, vs *viewState) mapped {
	if own, ok := c.events.(contentEvents); ok {
		return mapped{contents: c.request.Contents, sources: own.sources()}
	}
	if p, ok := vs.memo.reduce(c, s.generation, vs.cut); ok {
		return p
	}
	return mapped{contents: c.request.Contents, sources: window.Map(c.request.Contents, c.events, c.view)}
}

// reduce maps the tail of a request alone. It reports false when the request is not surely the last one with new contents
// behind it: events were replaced, the tail does not begin where it did, or a response came late to a call before it.
func (o *memo) reduce(c call, generation int, cut window.Cut) (mapped, bool) {
	contents := c.request.Contents
	if !o.valid || o.generation != generation || c.view.Stream.Scope != "" || o.start >= len(contents) ||
		c.events.Len() < o.events || eventID(c.events, o.events-1) != o.lastID || eventID(c.events, cut.At) != cut.EventID {
		return mapped{}, false
	}
	tail := window.Map(contents[o.start:], tailEvents{c.events, cut.At}, c.view)
	for _, from := range tail {
		for i := range from {
			from[i] += int32(cut.At)
		}
	}
	if len(tail[0]) == 0 || int(tail[0][0]) != cut.At {
		return mapped{}, false
	}
	for i := o.events; i < c.events.Len(); i++ {
		if e := c.events.At(i); e != nil && window.HasResponse(e.Content) && !mentions(tail, i) {
			return mapped{}, false
		}
	}
	n := len(o.kept)
	p := mapped{
		contents: make([]*genai.Content, n, n+len(tail)),
		index:    make([]int, n, n+len(tail)),
		sources:  make(window.Sources, n, n+len(tail)),
	}
	copy(p.index, o.kept)
	copy(p.sources, o.sources)
	for i, at := range o.kept {
		p.contents[i] = contents[at]
	}
	p.contents = append(p.contents, contents[o.start:]...)
	p.sources = append(p.sources, tail...)
	for i := range tail {
		p.index = append(p.index, o.start+i)
	}
	return p, true
}

func mentions(sources window.Sources, event int) bool {
	for _, from := range sources {
		for _, at := range from {
			if int(at) == event {
				return true
			}
		}
	}
	return false
}

// remember takes down what was kept, for the next request.
func (o *memo) remember(c call, generation int, p mapped, sel window.Selection) {
	known := 0 // contents whose sources the last memo held already
	if p.index != nil {
		known = len(o.kept)
	}
	*o = memo{}
	if sel.Cut.EventID == "" || sel.Forced > 0 || sel.Over {
		return
	}
	for i := range p.contents {
		if from := p.sources[i]; len(from) > 0 && int(from[0]) >= sel.Cut.At {
			o.valid, o.start = true, p.at(i)
			break
		}
		if sel.Kept[i] {
			from := p.sources[i]
			if i >= known {
				from = slices.Clone(from) // it is a piece of a slice as long as the history
			}
			o.kept = append(o.kept, p.at(i))
			o.sources = append(o.sources, from)
		}
	}
	o.generation, o.events = generation, c.events.Len()
	o.lastID = eventID(c.events, o.events-1)
}

// tailEvents are a session's events from one on.
type tailEvents struct {
	window.Events
	from int
}

func (e tailEvents) Len() int { return e.Events.Len() - e.from }

func (e tailEvents) At(i int) *session.Event {
	if i < 0 {
		return nil
	}
	return e.Events.At(e.from + i)
}
