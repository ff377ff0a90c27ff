package gormtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

// Turn asks of a store what a turn and the work behind it ask: a load with a stamp and one without, a lease, a commit,
// the newest notes, the messages behind one. It leaves the session with one more observation.
func Turn(t testing.TB, store backends.Store, key backends.SessionKey) {
	t.Helper()
	ctx := context.Background()
	snap, err := store.Load(ctx, key, backends.Stamp{Epoch: "epoch", Version: -1})
	must(t, err)
	if _, err := store.Load(ctx, key, snap.Stamp); err != nil {
		t.Fatal(err)
	}
	if held, err := store.Lease(ctx, key, "turn", time.Minute); err != nil || !held {
		t.Fatalf("Lease = %v, %v", held, err)
	}
	from := snap.Cursors[backends.Stream{}]
	id := fmt.Sprint("m", from.Next())
	o, err := store.Commit(ctx, key, backends.Commit{
		Epoch: snap.Epoch, From: from, To: backends.Cursor{MessageID: id, Index: from.Next()},
		Observation: backends.Observation{Note: backends.Note{ID: "note-" + id, Text: "Note.", Tokens: 2}},
		Messages:    []backends.Message{{ID: id, Index: from.Next(), Text: "Message.", Tokens: 2}},
	})
	must(t, err)
	must(t, store.Release(ctx, key, "turn"))
	if _, err := store.ListRecentObservations(ctx, key, 20); err != nil {
		t.Fatal(err)
	}
	if _, err := store.ListRecentReflections(ctx, key, 5); err != nil {
		t.Fatal(err)
	}
	if list, err := store.ListMessages(ctx, key, backends.MessageQuery{ObservationID: o.ID}); err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if list, err := store.ListNotes(ctx, key, backends.NoteQuery{IDs: []string{o.ID}}); err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
}

// Upkeep asks of a store what happens less often: a reflection, a list of sessions, a sweep, deletions.
func Upkeep(t testing.TB, store backends.Store, key backends.SessionKey) {
	t.Helper()
	ctx := context.Background()
	snap, err := store.Load(ctx, key, backends.Stamp{})
	must(t, err)
	_, err = store.Condense(ctx, key, backends.Condense{Epoch: snap.Epoch, Reflection: backends.Reflection{
		Note: backends.Note{ID: "condensed", Text: "Reflection.", Tokens: 2}, Generation: 1,
		Sources: []string{snap.Observations[0].ID, snap.Observations[1].ID},
	}})
	must(t, err)
	_, err = store.ListSessions(ctx, backends.SessionQuery{App: key.App, Limit: 20})
	must(t, err)
	_, err = store.ListSessions(ctx, backends.SessionQuery{App: key.App, User: key.User})
	must(t, err)
	must(t, store.DeleteObservationsBySession(ctx, key))
	must(t, store.DeleteReflectionsBySession(ctx, key))
	must(t, store.DeleteSession(ctx, key))
	must(t, store.DeleteUser(ctx, key.App, key.User))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
