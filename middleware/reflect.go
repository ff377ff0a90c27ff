package middleware

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/observer"
	"github.com/adkmemory/adkmemory/middleware/reflector"
)

// reflect condenses a session's observations once they are past the threshold, then its reflections once there are
// enough of them. A failure is logged and counted and changes nothing.
func (m *Middleware) reflect(ctx context.Context, key backends.SessionKey, s *sessionState, j job) {
	snap, err := m.reflectOnObservations(ctx, key, s, j)
	if err != nil {
		m.reflectFault(ctx, key, err)
	}
	if err := m.reflectOnReflections(ctx, key, s, j, snap); err != nil {
		m.reflectFault(ctx, key, err)
	}
}

func (m *Middleware) reflectFault(ctx context.Context, key backends.SessionKey, err error) {
	if errors.Is(err, backends.ErrConflict) {
		m.stats.conflicts.Add(1)
		return
	}
	m.fault(ctx, &m.stats.reflectFailures, "a reflection could not be written; the notes stay as they are", err, "session", key.String())
}

// ReflectOnReflections condenses a session's reflections into one of the next generation when it holds at least
// ReflectionConsolidationThreshold of them. The background does this by itself after every observation.
func (m *Middleware) ReflectOnReflections(ctx context.Context, key backends.SessionKey) error {
	if !m.cfg.Enabled {
		return nil
	}
	return m.reflectOnReflections(withoutMemory(ctx), key, m.session(key), job{}, nil)
}

// reflectOnObservations condenses all observations of a stream, the largest stream first, until what is left of the
// session is within the threshold and, so that terse notes are not left out of the prompt for their number, within
// MaxObservationsInContext. It returns the notes as they were before.
func (m *Middleware) reflectOnObservations(ctx context.Context, key backends.SessionKey, s *sessionState, j job) (*backends.Snapshot, error) {
	snap, err := m.deps.Store.Load(ctx, key, backends.Stamp{})
	if err != nil || snap == nil {
		return nil, err
	}
	groups, tokens, total := group(snap.Observations, func(o backends.Observation) backends.Note { return o.Note })
	count := len(snap.Observations)
	for _, stream := range largestFirst(tokens) {
		if total <= m.cfg.ObservationTokenThreshold && count <= m.cfg.MaxObservationsInContext {
			break
		}
		total -= tokens[stream]
		count -= len(groups[stream])
		req := reflector.Request{Observations: groups[stream], Model: m.telemetry.traced(j.model, "")}
		if err := m.condense(ctx, key, s, j, snap.Epoch, stream, s.unshrunk, req); err != nil {
			return snap, err
		}
	}
	return snap, nil
}

// reflectOnReflections is [Middleware.ReflectOnReflections]. have is what was loaded last; it costs little then to see that
// nothing has changed since.
func (m *Middleware) reflectOnReflections(ctx context.Context, key backends.SessionKey, s *sessionState, j job, have *backends.Snapshot) error {
	snap, stamp := have, backends.Stamp{}
	if have != nil {
		stamp = have.Stamp
	}
	newer, err := m.deps.Store.Load(ctx, key, stamp)
	if newer != nil {
		snap = newer
	}
	if err != nil || snap == nil {
		return err
	}
	groups, tokens, _ := group(snap.Reflections, func(r backends.Reflection) backends.Note { return r.Note })
	count := len(snap.Reflections)
	for _, stream := range largestFirst(tokens) {
		if count < m.cfg.ReflectionConsolidationThreshold {
			return nil
		}
		if len(groups[stream]) < 2 {
			continue
		}
		count -= len(groups[stream]) - 1
		req := reflector.Request{Reflections: groups[stream], Model: m.telemetry.traced(j.model, "")}
		if err := m.condense(ctx, key, s, j, snap.Epoch, stream, s.unshrunkMR, req); err != nil {
			return err
		}
	}
	return nil
}

// condense writes one reflection over the request's notes and stores it in their place. Notes that could not be made
// smaller are not tried again before they have grown.
func (m *Middleware) condense(ctx context.Context, key backends.SessionKey, s *sessionState, j job, epoch string, stream backends.Stream, unshrunk map[backends.Stream]int, req reflector.Request) (err error) {
	c := backends.Condense{Epoch: epoch, Discard: !*m.cfg.Archive}
	c.Reflection.Stream, c.Reflection.Generation = stream, 1
	var sources []backends.Note
	for _, o := range req.Observations {
		sources = append(sources, o.Note)
	}
	for _, r := range req.Reflections {
		sources = append(sources, r.Note)
		c.Reflection.Generation = max(c.Reflection.Generation, r.Generation+1)
	}
	total := 0
	for _, n := range sources {
		total += n.Tokens
		c.Reflection.Sources = append(c.Reflection.Sources, n.ID)
	}
	s.mu.Lock()
	refused := unshrunk[stream]
	s.mu.Unlock()
	if total <= refused {
		return nil
	}
	ctx, a := m.telemetry.start(ctx, stageReflect, key, j.link)
	defer func() { a.end(err) }()

	note, err := m.write(ctx, key, s, &s.reflectFailures, total-1,
		func(ctx context.Context) (observer.Note, error) { return m.deps.Reflector.Reflect(ctx, req) },
		func(ctx context.Context) (observer.Note, error) { return m.extractReflector.Reflect(ctx, req) })
	if errors.Is(err, observer.ErrRejected) {
		s.mu.Lock()
		unshrunk[stream] = total
		s.mu.Unlock()
	}
	if err != nil {
		return err
	}
	n := &c.Reflection.Note
	n.ID, n.Text, n.Tokens, n.Writer = m.deps.NewID(), note.Text, note.Tokens, note.Writer
	n.CreatedAt = m.deps.Now().Truncate(backends.TimePrecision)
	n.Range = joinRanges(sources)
	commitCtx, commit := m.telemetry.start(ctx, stageCommit, key, trace.SpanContext{})
	stored, err := m.deps.Store.Condense(commitCtx, key, c)
	commit.end(err)
	if err != nil {
		return fmt.Errorf("condense: %w", err)
	}
	s.mu.Lock()
	delete(unshrunk, stream)
	s.mu.Unlock()
	m.stats.reflections.Add(1)
	m.stored(ctx, key, stored.Note, nil)
	a.wrote(stored.Note, stored.Generation, len(sources), total)
	return nil
}

// joinRanges is the range from the earliest source's start to the latest one's end. The order of the sources is that of
// writing, which need not be that of the conversation.
func joinRanges(notes []backends.Note) backends.Range {
	first, last := notes[0].Range, notes[0].Range
	for _, n := range notes[1:] {
		if before(n.Range.StartTime, n.Range.Start, first.StartTime, first.Start) {
			first = n.Range
		}
		if before(last.EndTime, last.End, n.Range.EndTime, n.Range.End) {
			last = n.Range
		}
	}
	return backends.Range{
		Start: first.Start, StartID: first.StartID, StartTime: first.StartTime,
		End: last.End, EndID: last.EndID, EndTime: last.EndTime,
	}
}

// before compares places in a stream: by time, since a compaction shifts indices, and by index within one microsecond.
func before(t time.Time, i int64, u time.Time, j int64) bool {
	return t.Before(u) || t.Equal(u) && i < j
}

// group sorts notes by stream, and adds up their tokens.
func group[N any](notes []N, note func(N) backends.Note) (map[backends.Stream][]N, map[backends.Stream]int, int) {
	groups, tokens, total := make(map[backends.Stream][]N), make(map[backends.Stream]int), 0
	for _, n := range notes {
		stream := note(n).Stream
		groups[stream] = append(groups[stream], n)
		tokens[stream] += note(n).Tokens
		total += note(n).Tokens
	}
	return groups, tokens, total
}

func largestFirst(tokens map[backends.Stream]int) []backends.Stream {
	streams := make([]backends.Stream, 0, len(tokens))
	for stream := range tokens {
		streams = append(streams, stream)
	}
	slices.SortFunc(streams, func(a, b backends.Stream) int {
		if tokens[a] != tokens[b] {
			return tokens[b] - tokens[a]
		}
		return compareStreams(a, b)
	})
	return streams
}
