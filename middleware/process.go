package middleware

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/otel/trace"

	"google.golang.org/adk/v2/model"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/observer"
	"github.com/adkmemory/adkmemory/middleware/window"
)

// job is what a trigger hands to the background: copies of the un-observed messages, so that nothing of the turn is
// touched later.
type job struct {
	epoch   string
	model   model.LLM
	link    trace.SpanContext // of the turn that triggered it
	begin   time.Time         // when it did
	streams []streamBacklog
	upTo    int    // the last event before which all is observed once the job is done; -1 without an ADK session
	upToID  string // its id

	contents bool // ids are made of contents, for want of an ADK session
}

type streamBacklog struct {
	stream   backends.Stream
	from     backends.Cursor    // what they come after
	messages []backends.Message // contiguous, oldest first
	prints   []string           // their fingerprints
}

// maxJobBytes bounds the copies that wait for the background: a few images are larger than a whole conversation of text.
// What is past it is left to the next trigger.
const maxJobBytes = 64 << 20

// backlog copies the un-observed messages of the session, streams with the most first, until what is left is below the
// threshold again. With a single stream that is all of them. The caller holds the session's lock.
func (m *Middleware) backlog(j *job, s *sessionState, events window.Events) {
	streams := make([]backends.Stream, 0, len(s.streams))
	for stream, st := range s.streams {
		if st.pending > 0 {
			streams = append(streams, stream)
		}
	}
	slices.SortFunc(streams, func(a, b backends.Stream) int { return s.streams[b].pending - s.streams[a].pending })
	own, withoutSession := events.(contentEvents)
	left, size := s.pending(), 0
	j.upTo = s.seen - 1
	for _, stream := range streams {
		st := s.streams[stream]
		if left <= m.cfg.MessageTokenThreshold/2 || size > maxJobBytes {
			j.upTo = min(j.upTo, st.last) // not quite the first un-observed message, but surely before it
			continue
		}
		left -= st.pending
		b := streamBacklog{stream: stream, from: st.cursor}
		index := st.cursor.Next()
		for i := st.last + 1; i < s.seen; i++ {
			e := events.At(i)
			if !window.IsMessage(e) || window.StreamOf(e) != stream {
				continue
			}
			if size > maxJobBytes {
				j.upTo = min(j.upTo, i-1)
				break
			}
			msg, mark := toMessage(e, index, m.eventTokens(e))
			if withoutSession {
				mark = own.prints[i]
			}
			if msg.Time.IsZero() {
				msg.Time = m.deps.Now().Truncate(backends.TimePrecision)
			}
			size += len(msg.Text) + len(msg.Content)
			b.messages = append(b.messages, msg)
			b.prints = append(b.prints, mark)
			index++
		}
		j.streams = append(j.streams, b)
	}
	if j.contents = withoutSession; withoutSession {
		j.upTo = -1
	}
	j.upToID = eventID(events, j.upTo)
}

// process works off one job: it observes each stream's backlog, oldest first, then condenses what has grown too large,
// then compacts. It is the buffer's Process func.
func (m *Middleware) process(ctx context.Context, key backends.SessionKey, j job) {
	ctx, a := m.telemetry.start(withoutMemory(ctx), stageProcess, key, j.link)
	defer a.end(nil)
	release, ok := m.lease(ctx, key)
	if !ok {
		return
	}
	defer release()
	s := m.session(key)
	stored, err := m.observeAll(ctx, key, s, j)
	if err != nil {
		m.giveUp(ctx, key, err)
	}
	if !stored {
		return
	}
	m.reflect(ctx, key, s, j)
	if err == nil {
		m.compact(ctx, key, j)
	}
}

// giveUp logs and counts why a backlog could not be observed. The cursor has not moved: the next trigger tries again.
func (m *Middleware) giveUp(ctx context.Context, key backends.SessionKey, err error) {
	if errors.Is(err, backends.ErrConflict) {
		m.stats.conflicts.Add(1)
		m.deps.Logger.DebugContext(ctx, "adkmemory: the session changed while it was observed; the next trigger tries again",
			"session", key.String(), "error", err)
		return
	}
	m.fault(ctx, &m.stats.observeFailures, "an observation could not be written; the next trigger tries again", err, "session", key.String())
}

// observeAll writes the notes over a job's streams. It reports whether any was stored, also beside an error.
func (m *Middleware) observeAll(ctx context.Context, key backends.SessionKey, s *sessionState, j job) (bool, error) {
	snap, err := m.deps.Store.Load(ctx, key, backends.Stamp{})
	if err != nil {
		return false, fmt.Errorf("load: %w", err)
	}
	if snap == nil {
		snap = &backends.Snapshot{}
	}
	if snap.Epoch != j.epoch && (j.epoch != "" || len(snap.Cursors) == 0) {
		return false, fmt.Errorf("the session was deleted meanwhile: %w", backends.ErrConflict)
	}
	total := 0
	for i, b := range j.streams {
		j.streams[i] = b.after(snap.Cursors[b.stream])
		total += j.streams[i].tokens()
	}
	if total <= m.cfg.MessageTokenThreshold/2 {
		return false, nil // another process, or the job before this one, has observed most of it
	}
	epoch, stored := snap.Epoch, false
	for _, b := range j.streams {
		from := snap.Cursors[b.stream]
		for len(b.messages) > 0 {
			batch := b.take(m.batchLimit(b.tokens()))
			if from, err = m.observe(ctx, key, s, j, epoch, from, batch); err != nil {
				return stored, err
			}
			stored = true
			b.messages, b.prints = b.messages[len(batch.messages):], b.prints[len(batch.prints):]
			if epoch == "" { // the first commit gave the session its epoch
				if epoch, err = m.epochAt(ctx, key, b.stream, from); err != nil {
					return stored, err
				}
			}
		}
	}
	return stored, nil
}

// batchLimit splits a backlog evenly into notes of at most MaxObservationBatchTokens.
func (m *Middleware) batchLimit(total int) int {
	notes := (total + m.cfg.MaxObservationBatchTokens - 1) / m.cfg.MaxObservationBatchTokens
	return min((total+notes-1)/notes, m.cfg.MaxObservationBatchTokens)
}

// epochAt returns the session's epoch while its cursor is the one that was just committed.
func (m *Middleware) epochAt(ctx context.Context, key backends.SessionKey, stream backends.Stream, c backends.Cursor) (string, error) {
	snap, err := m.deps.Store.Load(ctx, key, backends.Stamp{})
	if err != nil {
		return "", fmt.Errorf("load: %w", err)
	}
	if snap == nil || !snap.Cursors[stream].Equal(c) {
		return "", fmt.Errorf("the session was deleted meanwhile: %w", backends.ErrConflict)
	}
	return snap.Epoch, nil
}

// after leaves out what the cursor covers by now, and gives the rest the indices that follow it. Nothing is left when the
// cursor is neither where the backlog began nor within it: another process has come further, and the next trigger sees.
func (b streamBacklog) after(c backends.Cursor) streamBacklog {
	start := 0
	if c.MessageID != b.from.MessageID {
		start = slices.IndexFunc(b.messages, func(m backends.Message) bool { return m.ID == c.MessageID }) + 1
		if start == 0 {
			start = len(b.messages)
		}
	}
	b.messages, b.prints = slices.Clone(b.messages[start:]), b.prints[start:]
	for i := range b.messages {
		b.messages[i].Index = c.Next() + int64(i)
	}
	return b
}

func (b streamBacklog) tokens() int {
	total := 0
	for _, m := range b.messages {
		total += m.Tokens
	}
	return total
}

// take returns the oldest messages that together stay within limit tokens, at least one, at most what a commit holds.
func (b streamBacklog) take(limit int) streamBacklog {
	n, total := 0, 0
	for n < len(b.messages) && n < backends.MaxCommitMessages {
		total += b.messages[n].Tokens
		if n > 0 && total > limit {
			break
		}
		n++
	}
	return streamBacklog{stream: b.stream, messages: b.messages[:n], prints: b.prints[:n]}
}

// observe writes and stores one note over the batch. It returns the cursor behind it.
func (m *Middleware) observe(ctx context.Context, key backends.SessionKey, s *sessionState, j job, epoch string, from backends.Cursor, batch streamBacklog) (to backends.Cursor, err error) {
	ctx, a := m.telemetry.start(ctx, stageObserve, key, j.link)
	defer func() { a.end(err) }()

	batch.messages = m.redacted(batch.messages)
	req := observer.Request{Model: m.telemetry.traced(j.model, "")}
	for _, msg := range batch.messages {
		req.Messages = append(req.Messages, toObserver(msg))
	}
	note, err := m.write(ctx, key, s, &s.failures, batch.tokens(),
		func(ctx context.Context) (observer.Note, error) { return m.deps.Observer.Observe(ctx, req) },
		func(ctx context.Context) (observer.Note, error) { return m.extractObserver.Observe(ctx, req) })
	if err != nil {
		return to, err
	}
	first, last := batch.messages[0], batch.messages[len(batch.messages)-1]
	to = cursorOf(last, batch.prints[len(batch.prints)-1])
	c := backends.Commit{
		Epoch: epoch, From: from, To: to,
		Observation: backends.Observation{Note: backends.Note{
			ID: m.deps.NewID(), Stream: batch.stream, Text: note.Text, Tokens: note.Tokens, Writer: note.Writer,
			Range: backends.Range{
				Start: first.Index, End: last.Index, StartID: first.ID, EndID: last.ID,
				StartTime: first.Time, EndTime: last.Time,
			},
			CreatedAt: m.deps.Now().Truncate(backends.TimePrecision),
		}},
	}
	if *m.cfg.Archive {
		c.Messages = batch.messages
	}
	commitCtx, commit := m.telemetry.start(ctx, stageCommit, key, trace.SpanContext{})
	o, err := m.commit(commitCtx, key, j, c)
	commit.end(err)
	if err != nil {
		return to, fmt.Errorf("commit: %w", err)
	}
	if !j.begin.IsZero() {
		m.telemetry.metrics.lag.record(time.Since(j.begin).Seconds())
	}
	m.stats.observations.Add(1)
	m.stored(ctx, key, o.Note, c.Messages)
	a.wrote(o.Note, 0, len(batch.messages), batch.tokens())
	return to, nil
}

func (m *Middleware) stored(ctx context.Context, key backends.SessionKey, note backends.Note, messages []backends.Message) {
	if m.deps.Stored != nil {
		m.safely(ctx, func() { m.deps.Stored(ctx, key, note, messages) })
	}
}

// commit stores a note. Without an ADK session, ids come from contents: one that is stored already, although the cursor
// is where it was, belongs to another message that says the same. It is stored under an id of its own then; a conflict for
// ever would keep the session from being observed. An event's id is its own, so there the conflict stands: the view of
// the session was an old one.
func (m *Middleware) commit(ctx context.Context, key backends.SessionKey, j job, c backends.Commit) (backends.Observation, error) {
	o, err := m.deps.Store.Commit(ctx, key, c)
	if !errors.Is(err, backends.ErrConflict) || !j.contents || len(c.Messages) == 0 {
		return o, err
	}
	snap, loadErr := m.deps.Store.Load(ctx, key, backends.Stamp{})
	if loadErr != nil || snap == nil || snap.Epoch != c.Epoch || !snap.Cursors[c.Observation.Stream].Equal(c.From) {
		return o, err
	}
	c.Messages = slices.Clone(c.Messages)
	for i, msg := range c.Messages {
		c.Messages[i].ID = hash(msg.ID, []byte(c.Observation.ID))
	}
	return m.deps.Store.Commit(ctx, key, c)
}

// writer writes a note: an Observer or a Reflector with its request.
type writer func(context.Context) (observer.Note, error)

// write asks the model for a note: within ObserverTimeout, ObserverAttempts times with a growing pause, through the
// circuit breaker. After FailuresBeforeFallback triggers that failed in a row the extractive twin writes instead, and
// the model is asked once per trigger whether it works again.
func (m *Middleware) write(ctx context.Context, key backends.SessionKey, s *sessionState, failed *int, source int, ask, extract writer) (observer.Note, error) {
	s.mu.Lock()
	failures := *failed
	s.mu.Unlock()
	fallback := m.cfg.FailuresBeforeFallback > 0 && failures >= m.cfg.FailuresBeforeFallback
	attempts := m.cfg.ObserverAttempts
	if fallback {
		attempts = 1
	}
	note, err := backoff.Retry(ctx, func() (observer.Note, error) {
		note, err := m.breaker.Execute(func() (observer.Note, error) {
			ctx, cancel := context.WithTimeout(ctx, m.cfg.ObserverTimeout)
			defer cancel()
			return m.guarded(ctx, source, ask)
		})
		if errors.Is(err, observer.ErrNoModel) {
			err = backoff.Permanent(err)
		}
		return note, err
	}, backoff.WithMaxTries(uint(attempts)), backoff.WithBackOff(&backoff.ExponentialBackOff{
		InitialInterval: 200 * time.Millisecond, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: 10 * time.Second,
	}))
	switch {
	case err == nil:
		s.mu.Lock()
		*failed = 0
		s.mu.Unlock()
		return note, nil
	case ctx.Err() != nil:
		return note, err
	case fallback || errors.Is(err, observer.ErrNoModel):
		m.stats.fallbacks.Add(1)
		m.deps.Logger.WarnContext(ctx, "adkmemory: the model failed to write a note; extracting one instead", "session", key.String(), "error", err)
		return m.guarded(ctx, source, extract)
	}
	s.mu.Lock()
	*failed++
	s.mu.Unlock()
	return note, err
}

// guarded makes sure of what holds for every Observer and Reflector: a panic is its failure, and a note has text, a
// token count, and fewer tokens than its source.
func (m *Middleware) guarded(ctx context.Context, source int, write writer) (note observer.Note, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	if note, err = write(ctx); err != nil {
		return note, err
	}
	note.Tokens = m.deps.Counter.Count(note.Text)
	switch {
	case note.Text == "":
		return note, observer.ErrEmpty
	case note.Tokens > source:
		return note, observer.ErrTooLong
	}
	return note, nil
}
