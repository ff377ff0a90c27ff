package middleware

import (
	"context"
	"slices"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/prompt"
	"github.com/adkmemory/adkmemory/middleware/window"
)

// section returns the memory section for a view, the one built before while nothing it shows has changed. The caller
// holds the session's lock.
func (m *Middleware) section(s *sessionState, vs *viewState, v window.View, snap *backends.Snapshot, events window.Events, sel window.Selection, scale float64) prompt.Section {
	cacheFriendly := m.cfg.Layout == LayoutCacheFriendly
	if vs.fresh && vs.stamp == snap.Stamp && (!cacheFriendly || vs.tail == sel.TailStart) {
		return vs.section
	}
	if cacheFriendly && vs.fresh && vs.tail == sel.TailStart && vs.stamp.Epoch == snap.Epoch &&
		stillKept(vs.shown, snap) && s.stillCovers(vs.shown, snap, v.Stream, events, sel.TailStart) {
		vs.stamp = snap.Stamp
		return vs.section
	}
	reflections, observations := visible(snap, v.Stream)
	if cacheFriendly {
		observations = slices.DeleteFunc(observations, func(o backends.Observation) bool { return inTail(o.Note, events, sel.TailStart) })
		reflections = slices.DeleteFunc(reflections, func(r backends.Reflection) bool { return inTail(r.Note, events, sel.TailStart) })
	}
	vs.section = prompt.Memory(reflections, observations, m.memoryBudget(scale))
	if cacheFriendly {
		vs.shown = headers(reflections, observations)
	}
	vs.stamp, vs.tail, vs.fresh = snap.Stamp, sel.TailStart, true
	return vs.section
}

// readSection is the memory section for a caller that only reads: a nested run sees what the session's own root agent
// would see.
func (m *Middleware) readSection(s *sessionState, snap *backends.Snapshot, c caller) prompt.Section {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snap = snap
	reflections, observations := visible(snap, c.stream)
	return prompt.Memory(reflections, observations, m.memoryBudget(1))
}

func (m *Middleware) memoryBudget(scale float64) prompt.Budget {
	return prompt.Budget{
		Tokens:          int(float64(m.cfg.MemoryTokenBudget) / scale),
		MaxReflections:  m.cfg.MaxReflectionsInContext,
		MaxObservations: m.cfg.MaxObservationsInContext,
		NewestFirst:     m.cfg.ObservationOrder == OrderNewest,
		Counter:         m.deps.Counter,
	}
}

// visible returns copies of the lists of notes that ADK's visibility rules show to an agent in the given stream.
func visible(snap *backends.Snapshot, view backends.Stream) ([]backends.Reflection, []backends.Observation) {
	var reflections []backends.Reflection
	for _, r := range snap.Reflections {
		if r.Stream.VisibleFrom(view) {
			reflections = append(reflections, r)
		}
	}
	var observations []backends.Observation
	for _, o := range snap.Observations {
		if o.Stream.VisibleFrom(view) {
			observations = append(observations, o)
		}
	}
	return reflections, observations
}

// inTail reports whether every message that a note covers still stands in the window's tail.
func inTail(n backends.Note, events window.Events, tail int) bool {
	for i := events.Len() - 1; i >= tail; i-- {
		if eventID(events, i) == n.Range.StartID {
			return true
		}
	}
	return false
}

// headers returns the notes without their texts.
func headers(reflections []backends.Reflection, observations []backends.Observation) []backends.Note {
	notes := make([]backends.Note, 0, len(reflections)+len(observations))
	for _, r := range reflections {
		notes = append(notes, r.Note)
	}
	for _, o := range observations {
		notes = append(notes, o.Note)
	}
	for i := range notes {
		notes[i].Text = ""
	}
	return notes
}

// stillKept reports whether every note that a section was made from is active, or condensed into one that is: a section
// may outlive its notes' condensation, but not their deletion.
func stillKept(shown []backends.Note, snap *backends.Snapshot) bool {
	active := make(map[string]bool, len(snap.Observations)+len(snap.Reflections))
	for _, o := range snap.Observations {
		active[o.ID] = true
	}
	for _, r := range snap.Reflections {
		active[r.ID] = true
	}
	for _, n := range shown {
		condensed := func(r backends.Reflection) bool {
			return r.Stream == n.Stream && r.Seq > n.Seq && !r.Range.StartTime.After(n.Range.StartTime) && !r.Range.EndTime.Before(n.Range.EndTime)
		}
		if !active[n.ID] && !slices.ContainsFunc(snap.Reflections, condensed) {
			return false
		}
	}
	return true
}

// stillCovers reports whether no message before the tail was observed since the notes shown were written. Notes cover
// their stream from its beginning without a gap, so it is enough to look behind the newest one of each stream. The caller
// holds the session's lock.
func (s *sessionState) stillCovers(shown []backends.Note, snap *backends.Snapshot, view backends.Stream, events window.Events, tail int) bool {
	ends := make(map[backends.Stream]string)
	for _, n := range shown {
		if n.Stream.VisibleFrom(view) {
			ends[n.Stream] = n.Range.EndID // in the order of writing, so the newest one's stays
		}
	}
	open := make(map[backends.Stream]bool)
	for stream, c := range snap.Cursors {
		if stream.VisibleFrom(view) && ends[stream] != c.MessageID {
			open[stream] = true
		}
	}
	for i := events.Len() - 1; i >= 0 && len(open) > 0; i-- {
		e := events.At(i)
		stream := window.StreamOf(e)
		switch {
		case !open[stream] || !window.IsMessage(e):
		case e.ID == ends[stream]:
			delete(open, stream)
		case i < tail && s.observed(events, i):
			return false
		}
	}
	return true
}

// account counts what a turn shows, and what it could not show.
func (m *Middleware) account(ctx context.Context, key backends.SessionKey, contents int, d decision) {
	m.telemetry.sent(ctx, contents, d)
	m.stats.rawLeftOut.Add(int64(d.window.RawLeftOut + d.rawLeftOut))
	m.stats.notesLeftOut.Add(int64(len(d.section.LeftOut)))
	m.stats.droppedHardLimit.Add(int64(d.window.Forced))
	if d.warn {
		m.deps.Logger.WarnContext(ctx, "adkmemory: un-observed messages were left out of the prompt to stay within hardMessageTokenLimit",
			"session", key.String(), "messages", d.window.Forced)
	}
}
