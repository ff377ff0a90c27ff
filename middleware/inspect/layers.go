package inspect

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/adkmemory/adkmemory/backends"
)

// The picture of the layers, in units of its own: it is stretched to the width of the page.
const (
	pictureWidth = 1000.0
	rowHeight    = 34
	blockHeight  = 26
	blockGap     = 2.0
	maxWeight    = 40 // messages from which on a block is not drawn any wider
	maxLayers    = 6  // generations above that share the top row
)

// layers is a picture of how notes lie over messages: one row a layer, messages at the bottom, and each note as wide as
// what it covers.
type layers struct {
	Height int
	Names  []string // of the rows, from the top
	Blocks []block
	Notes  int
}

type block struct {
	X, Width   string
	Y, Height  int
	Class      string
	Active     bool
	Link, Name string
}

type extent struct{ from, to float64 }

// newLayers draws the given notes; nil without any. Reflections lie over those of their sources that are among them, or
// stand alone when none is.
func newLayers(key backends.SessionKey, notes []backends.StoredNote) *layers {
	if len(notes) == 0 {
		return nil
	}
	notes = slices.Clone(notes)
	slices.SortFunc(notes, func(a, b backends.StoredNote) int {
		return cmp.Or(cmp.Compare(a.Stream.Branch, b.Stream.Branch), cmp.Compare(a.Stream.Scope, b.Stream.Scope),
			a.Range.StartTime.Compare(b.Range.StartTime), cmp.Compare(a.Seq, b.Seq))
	})
	at := place(notes)
	top := 0
	for _, n := range notes {
		top = max(top, min(n.Generation, maxLayers))
	}
	l := &layers{Height: (top+1)*rowHeight + blockHeight/2, Notes: len(notes)}
	for g := top; g > 0; g-- {
		name := "Generation " + strconv.Itoa(g)
		if g == 1 {
			name = "Reflections"
		}
		l.Names = append(l.Names, name)
	}
	l.Names = append(l.Names, "Observations", "Messages")
	for _, n := range notes {
		e := at[n.ID]
		generation := min(n.Generation, maxLayers)
		b := block{
			X: units(e.from), Width: units(max(1, e.to-e.from-blockGap)), Y: (top - generation) * rowHeight, Height: blockHeight,
			Class: classOf(n.Generation), Active: n.Active, Link: link("note", key, "id", n.ID), Name: noteName(n.Generation, n.Seq),
		}
		b.Name += ", over " + plural(messagesOf(n.Range), "message", "messages")
		if !n.Active {
			b.Name += ", condensed"
		}
		l.Blocks = append(l.Blocks, b)
		if n.Generation == 0 {
			b.Y, b.Class, b.Active, b.Link, b.Name = (top+1)*rowHeight, "message", false, "", ""
			b.Height = blockHeight / 2
			l.Blocks = append(l.Blocks, b)
		}
	}
	return l
}

// place gives each note its extent from left to right. Notes without a source among the others stand side by side, as
// wide as the messages they cover are many.
func place(notes []backends.StoredNote) map[string]extent {
	known := make(map[string]bool, len(notes))
	for _, n := range notes {
		known[n.ID] = true
	}
	alone := func(n backends.StoredNote) bool {
		return !slices.ContainsFunc(n.Sources, func(id string) bool { return known[id] })
	}
	at := make(map[string]extent, len(notes))
	total := 0.0
	for _, n := range notes {
		if alone(n) {
			width := float64(min(maxWeight, 2+messagesOf(n.Range)))
			at[n.ID] = extent{total, total + width}
			total += width
		}
	}
	scale := (pictureWidth + blockGap) / max(1, total)
	for id, e := range at {
		at[id] = extent{e.from * scale, e.to * scale}
	}
	bySeq := slices.Clone(notes) // sources come before what was made of them
	slices.SortFunc(bySeq, func(a, b backends.StoredNote) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, n := range bySeq {
		if alone(n) {
			continue
		}
		over := extent{pictureWidth, 0}
		for _, id := range n.Sources {
			if e, ok := at[id]; ok {
				over = extent{min(over.from, e.from), max(over.to, e.to)}
			}
		}
		at[n.ID] = over
	}
	return at
}

func units(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }
