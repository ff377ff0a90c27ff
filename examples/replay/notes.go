package main

import (
	"context"
	"strings"
	"unicode"

	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
)

// noteBook is what a session's store says about its notes, the condensed ones included.
type noteBook struct {
	key   backends.SessionKey
	stamp backends.Stamp
	notes map[string]backends.StoredNote // by id; kept also when the archive drops them
	plain map[string]string              // by id, the text's letters and digits
}

func newNoteBook(key backends.SessionKey) *noteBook {
	return &noteBook{key: key, notes: map[string]backends.StoredNote{}, plain: map[string]string{}}
}

// refresh reads the notes again when the session has changed.
func (b *noteBook) refresh(ctx context.Context, store backends.Store) error {
	snapshot, err := store.Load(ctx, b.key, b.stamp)
	if err != nil || snapshot == nil {
		return err
	}
	for id, note := range b.notes {
		note.Active = false // unless the store still says so
		b.notes[id] = note
	}
	for after := int64(0); ; {
		page, err := store.ListNotes(ctx, b.key, backends.NoteQuery{AfterSeq: after, Limit: backends.MaxListItems})
		if err != nil {
			return err
		}
		for _, note := range page {
			b.notes[note.ID] = note
			if _, ok := b.plain[note.ID]; !ok {
				b.plain[note.ID] = lettersAndDigits(note.Text)
			}
			after = note.Seq
		}
		if len(page) < backends.MaxListItems {
			break
		}
	}
	b.stamp = snapshot.Stamp
	return nil
}

// active returns the ids of the active notes, and the sequence number of the newest note of all.
func (b *noteBook) active() (map[string]bool, int64) {
	active, last := map[string]bool{}, int64(0)
	for id, note := range b.notes {
		last = max(last, note.Seq)
		if note.Active {
			active[id] = true
		}
	}
	return active, last
}

// shownIn returns the notes whose text stands in the prompt: in its instruction, or in a content that was added. Only
// letters and digits are compared, so that any way of quoting will do. Notes that were no longer active when the call
// began are looked for with condensed only.
func (b *noteBook) shownIn(c *call, sent prompt, kept []int, condensed bool) map[string]bool {
	var text strings.Builder
	text.WriteString(lettersAndDigits(sent.system))
	for i, j := range kept {
		if j < 0 && sent.contents[i] != nil {
			text.WriteString(lettersAndDigits(textOf(sent.contents[i])))
		}
	}
	all := text.String()
	shown := map[string]bool{}
	for id, plain := range b.plain {
		if (condensed || c.active[id] || b.notes[id].Seq > c.lastSeq) && strings.Contains(all, plain) {
			shown[id] = true
		}
	}
	return shown
}

func lettersAndDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, text)
}

// expand calls add with the ranges of the observations behind a note. For a reflection whose sources were dropped it is
// the range that the reflection itself claims.
func (b *noteBook) expand(note backends.StoredNote, add func(backends.Note)) {
	if note.Generation == 0 {
		add(note.Note)
		return
	}
	for _, id := range note.Sources {
		source, ok := b.notes[id]
		if !ok {
			add(note.Note)
			return
		}
		b.expand(source, add)
	}
}

// timeline finds events by id.
type timeline struct {
	events   []*session.Event
	position map[string]int
}

func newTimeline(events []*session.Event) timeline {
	position := make(map[string]int, len(events))
	for i, e := range events {
		position[e.ID] = i
	}
	return timeline{events, position}
}

// mark adds the ids of the events that an observation covers to a set.
func (t timeline) mark(note backends.Note, in map[string]bool) {
	start, ok := t.position[note.Range.StartID]
	end, ok2 := t.position[note.Range.EndID]
	if !ok || !ok2 || end < start {
		return // the note covers messages that are not there any more
	}
	for _, e := range t.events[start : end+1] {
		if (backends.Stream{Branch: e.Branch, Scope: e.IsolationScope}) == note.Stream {
			in[e.ID] = true
		}
	}
}
