package middleware

import "context"

// Stats counts what a middleware has done since it was made.
type Stats struct {
	Observations     int64 // notes written over messages
	Reflections      int64 // notes written over notes
	Fallbacks        int64 // of these, notes extracted because the model failed
	Compactions      int64 // summaries put in place of messages
	ObserveFailures  int64 // triggers given up for an error
	ReflectFailures  int64
	CompactFailures  int64
	LoadFailures     int64 // turns without memory because the store failed
	Panics           int64 // turns without memory because of a panic
	Conflicts        int64 // notes given up because another process was first
	Waits            int64 // turns that waited for the background at the hard limit
	DroppedHardLimit int64 // un-observed messages left out of a prompt for the hard limit, per prompt
	NotesLeftOut     int64 // notes that a prompt's limits left out, per prompt
	RawLeftOut       int64 // recent tool outputs that the budget left out, per move of the cut
	DroppedTriggers  int64 // triggers refused by a full queue or after Stop
	QueueDepth       int64 // sessions that wait for the background now
}

type counters struct {
	observations, reflections, fallbacks, compactions                       count
	observeFailures, reflectFailures, compactFailures, loadFailures, panics count
	conflicts, waits, droppedHardLimit, notesLeftOut, rawLeftOut            count
	droppedTriggers                                                         count // for the metric; Stats asks the buffer
}

// Stats returns the current counts. Zero with memory disabled.
func (m *Middleware) Stats() Stats {
	c := &m.stats
	s := Stats{
		Observations: c.observations.Load(), Reflections: c.reflections.Load(), Fallbacks: c.fallbacks.Load(),
		Compactions: c.compactions.Load(), ObserveFailures: c.observeFailures.Load(), ReflectFailures: c.reflectFailures.Load(),
		CompactFailures: c.compactFailures.Load(), LoadFailures: c.loadFailures.Load(), Panics: c.panics.Load(),
		Conflicts: c.conflicts.Load(), Waits: c.waits.Load(), DroppedHardLimit: c.droppedHardLimit.Load(),
		NotesLeftOut: c.notesLeftOut.Load(), RawLeftOut: c.rawLeftOut.Load(),
	}
	if m.buffer != nil {
		s.DroppedTriggers = int64(m.buffer.Dropped())
		s.QueueDepth = int64(m.buffer.Depth())
	}
	return s
}

// fault counts a failure and logs it once.
func (m *Middleware) fault(ctx context.Context, count *count, msg string, err error, args ...any) {
	count.Add(1)
	m.deps.Logger.ErrorContext(ctx, "adkmemory: "+msg, append(args, "error", err)...)
}
