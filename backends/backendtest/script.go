package backendtest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/adkmemory/adkmemory/backends"
)

// start is when the recorded conversations begin; its nanoseconds are more than a store keeps.
func start() time.Time {
	return time.Date(2026, 3, 4, 5, 6, 7, 123_456_789, time.FixedZone("", 3600))
}

func keyOf(session string) backends.SessionKey {
	return backends.SessionKey{App: "app", User: "user", Session: session}
}

// script plays one session against a store, as the middleware would.
type script struct {
	t       testing.TB
	store   backends.Store
	key     backends.SessionKey
	notes   int
	cursors map[backends.Stream]backends.Cursor
}

func play(t testing.TB, store backends.Store, key backends.SessionKey) *script {
	return &script{t: t, store: store, key: key, cursors: map[backends.Stream]backends.Cursor{}}
}

// load returns the session's state.
func (s *script) load() *backends.Snapshot {
	s.t.Helper()
	snap, err := s.store.Load(ctx(), s.key, backends.Stamp{})
	if err != nil || snap == nil {
		s.t.Fatalf("Load(%v) = %v, %v", s.key, snap, err)
	}
	return snap
}

// next is the commit over the stream's next n messages.
func (s *script) next(stream backends.Stream, n int) backends.Commit {
	s.t.Helper()
	return s.commit(stream, n, s.load().Epoch)
}

func (s *script) commit(stream backends.Stream, n int, epoch string) backends.Commit {
	s.notes++
	from := s.cursors[stream]
	messages := make([]backends.Message, n)
	for i := range messages {
		index := from.Next() + int64(i)
		messages[i] = message(stream, index)
	}
	first, last := messages[0], messages[n-1]
	return backends.Commit{
		Epoch: epoch,
		From:  from,
		To:    backends.Cursor{MessageID: last.ID, Time: last.Time, Fingerprint: "f-" + last.ID, Index: last.Index},
		Observation: backends.Observation{Note: backends.Note{
			ID: fmt.Sprintf("note%d", s.notes), Stream: stream, Text: fmt.Sprintf("Note %d.", s.notes), Tokens: 3,
			Writer: "model", CreatedAt: last.Time.Add(time.Second),
			Range: backends.Range{
				Start: first.Index, StartID: first.ID, StartTime: first.Time,
				End: last.Index, EndID: last.ID, EndTime: last.Time,
			},
		}},
		Messages: messages,
	}
}

func message(stream backends.Stream, index int64) backends.Message {
	return backends.Message{
		ID: fmt.Sprintf("%s%s-m%d", stream.Branch, stream.Scope, index), Index: index, InvocationID: "inv", Author: "user",
		Role: "user", Time: start().Add(time.Duration(index) * time.Minute), Text: fmt.Sprintf("Message %d.", index),
		Content: []byte(`{"parts":[{"text":"…"}]}`), Tokens: 4,
	}
}

// observe commits the next n messages of the stream.
func (s *script) observe(stream backends.Stream, n int) backends.Observation {
	s.t.Helper()
	c := s.next(stream, n)
	got, err := s.store.Commit(ctx(), s.key, c)
	if err != nil {
		s.t.Fatalf("Commit(%v) of %s: %v", s.key, c.Observation.ID, err)
	}
	s.cursors[stream] = c.To
	return got
}

// reflection is a reflection of the generation over the sources.
func (s *script) reflection(generation int, sources ...string) backends.Condense {
	s.t.Helper()
	return s.condensation(generation, s.load().Epoch, sources...)
}

func (s *script) condensation(generation int, epoch string, sources ...string) backends.Condense {
	s.notes++
	return backends.Condense{
		Epoch: epoch,
		Reflection: backends.Reflection{
			Note: backends.Note{
				ID: fmt.Sprintf("note%d", s.notes), Text: fmt.Sprintf("Reflection %d.", s.notes), Tokens: 5,
				Writer: "model", CreatedAt: start().Add(time.Hour),
				Range: backends.Range{Start: 0, StartID: "-m0", StartTime: start(), End: 1, EndID: "-m1", EndTime: start()},
			},
			Generation: generation, Sources: sources,
		},
	}
}

// condense stores a reflection.
func (s *script) condense(generation int, sources ...string) backends.Reflection {
	s.t.Helper()
	c := s.reflection(generation, sources...)
	got, err := s.store.Condense(ctx(), s.key, c)
	if err != nil {
		s.t.Fatalf("Condense(%v) of %v: %v", s.key, sources, err)
	}
	return got
}

// state is all that a store says about a session.
type state struct {
	Snapshot *backends.Snapshot
	Notes    []backends.StoredNote
	Messages []backends.StoredMessage
}

func (s *script) state() state {
	s.t.Helper()
	notes, err := s.store.ListNotes(ctx(), s.key, backends.NoteQuery{})
	if err != nil {
		s.t.Fatalf("ListNotes(%v): %v", s.key, err)
	}
	messages, err := s.store.ListMessages(ctx(), s.key, backends.MessageQuery{})
	if err != nil {
		s.t.Fatalf("ListMessages(%v): %v", s.key, err)
	}
	return state{Snapshot: s.load(), Notes: notes, Messages: messages}
}

// unchanged reports what fn did to the session.
func (s *script) unchanged(fn func()) {
	s.t.Helper()
	before := s.state()
	fn()
	same(s.t, "state of "+s.key.String(), s.state(), before)
}

// same compares what a store returned with what it should have.
func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s is not as it should be (-want +got):\n%s", what, diff)
	}
}

// is checks that a call failed for the reason.
func is(t testing.TB, what string, err, reason error) {
	t.Helper()
	if !errors.Is(err, reason) {
		t.Errorf("%s: error is %v, not %v", what, err, reason)
	}
}

func ids[T any](list []T, id func(T) string) []string {
	out := make([]string, len(list))
	for i, item := range list {
		out[i] = id(item)
	}
	return out
}

func observationID(o backends.Observation) string { return o.ID }
func reflectionID(r backends.Reflection) string   { return r.ID }
func noteID(n backends.StoredNote) string         { return n.ID }
func messageID(m backends.StoredMessage) string   { return m.ID }
