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
func (m *Middleware) section(vs *viewState, v window.View, snap *backends.Snapshot, events window.Events, sel window.Selection, scale float64) prompt.Section {
	cacheFriendly := m.cfg.Layout == LayoutCacheFriendly
	if vs.fresh && vs.stamp == snap.Stamp && (!cacheFriendly || vs.tail == sel.TailStart) {
		return vs.section
	}
	if cacheFriendly && vs.fresh && vs.tail == sel.TailStart && vs.stamp.Epoch == snap.Epoch &&
		stillCovers(vs.section.Included, snap, v.Stream, events, sel.TailStart) {
		vs.stamp = snap.Stamp
		return vs.section
	}
	reflections, observations := visible(snap, v.Stream)
	if cacheFriendly {
		observations = slices.DeleteFunc(observations, func(o backends.Observation) bool { return inTail(o.Note, events, sel.TailStart) })
		reflections = slices.DeleteFunc(reflections, func(r backends.Reflection) bool { return inTail(r.Note, events, sel.TailStart) })
	}
	vs.section = prompt.Memory(reflections, observations, m.memoryBudget(scale))
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

// stillCovers reports whether a section may stand although the notes have changed: every note it shows is active or
// condensed into one that is (a section may outlive its notes' condensation, but not their deletion), and every note
// that it does not show covers messages of the tail only, or was condensed from notes that it shows.
func stillCovers(included []string, snap *backends.Snapshot, view backends.Stream, events window.Events, tail int) bool {
	shown := make(map[string]bool, len(included))
	for _, id := range included {
		shown[id] = true
	}
	kept := 0
	reflections, observations := visible(snap, view)
	for _, o := range observations {
		if shown[o.ID] {
			kept++
		} else if !inTail(o.Note, events, tail) {
			return false
		}
	}
	for _, r := range reflections {
		if shown[r.ID] {
			kept++
			continue
		}
		sources := 0
		for _, id := range r.Sources {
			if shown[id] {
				sources++
			}
		}
		kept += sources
		if sources < len(r.Sources) && !inTail(r.Note, events, tail) {
			return false
		}
	}
	return kept == len(included)
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
