package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/adkmemory/adkmemory/backends"
)

// printer shows a conversation turn by turn, and each note when it first appears.
type printer struct {
	out   io.Writer
	store backends.Lister
	seen  int64 // the newest note that was shown
}

func (p *printer) printf(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format, args...) }

// welcome says which model answers, and what is remembered. It reports whether anything is.
func (p *printer) welcome(ctx context.Context, llm chosen, path string) (bool, error) {
	p.printf("adkmemory quickstart · model: %s\n", llm.Name())
	if llm.builtIn {
		p.printf("(The built-in model is no language model: it answers by looking sentences up in its prompt.\n" +
			" Set GOOGLE_API_KEY, or OPENAI_BASE_URL and OPENAI_MODEL, for a real one.)\n")
	}
	notes, err := p.newNotes(ctx)
	if err != nil {
		return false, err
	}
	if len(notes) == 0 {
		p.printf("Nothing is remembered yet in %s.\n", path)
		return false, nil
	}
	p.printf("\nWelcome back! This is what is remembered in %s:\n", path)
	for _, n := range notes {
		p.note(n)
	}
	return true, nil
}

// turn shows a turn, what it cost, and the notes that it brought about.
func (p *printer) turn(ctx context.Context, n int, line, answer string, m *meter) error {
	p.printf("\n%2d  you    %s\n    agent  %s\n", n, wrapped(line, "           "), wrapped(answer, "           "))
	p.printf("           %s sent %s tokens (%d messages + %s tokens of notes) · whole history %s (%d messages)\n",
		bar(m.last.sent, m.last.history), thousands(m.last.sent), m.sentCount, thousands(m.last.memory),
		thousands(m.last.history), m.historyCount)
	notes, err := p.newNotes(ctx)
	if err != nil {
		return err
	}
	for _, note := range notes {
		p.note(note)
	}
	return nil
}

func (p *printer) goodbye(m *meter, known bool, path string) {
	p.printf("\nSent %s tokens in all, %s of them notes. ", thousands(m.all.sent), thousands(m.all.memory))
	if known {
		p.printf("ADK's session knew only today's %d messages; the rest was memory.\n", m.historyCount)
	} else {
		p.printf("The whole history in every prompt would have been %s (%.0f %% more).\n", thousands(m.all.history),
			100*(float64(m.all.history)/float64(max(1, m.all.sent))-1))
	}
	p.printf("The notes stay in %s. Run it again: ADK's session will be empty, the memory will not.\n"+
		"(-reset forgets everything.)\n", path)
}

// shownNote is an observation or a reflection.
type shownNote struct {
	backends.Note
	kind string
}

// newNotes returns the active notes that were not shown yet.
func (p *printer) newNotes(ctx context.Context) ([]shownNote, error) {
	reflections, err := p.store.ListRecentReflections(ctx, key, 0)
	if err != nil {
		return nil, err
	}
	observations, err := p.store.ListRecentObservations(ctx, key, 0)
	if err != nil {
		return nil, err
	}
	var notes []shownNote
	for _, r := range reflections {
		notes = append(notes, shownNote{r.Note, fmt.Sprintf("reflection over %d notes", len(r.Sources))})
	}
	for _, o := range observations {
		kind := fmt.Sprintf("observation over messages %d to %d", o.Range.Start, o.Range.End)
		notes = append(notes, shownNote{o.Note, kind})
	}
	seen := p.seen
	fresh := notes[:0]
	for _, n := range notes {
		if n.Seq > seen {
			fresh = append(fresh, n)
			p.seen = max(p.seen, n.Seq)
		}
	}
	return fresh, nil
}

func (p *printer) note(n shownNote) {
	p.printf("  ✎ %s, %d tokens, by %s\n", n.kind, n.Tokens, n.Writer)
	for line := range strings.Lines(n.Text) {
		p.printf("    │ %s\n", wrapped(line, "    │   "))
	}
}

// bar draws how much of the history was sent.
func bar(sent, history int) string {
	const width = 20
	filled := width
	if history > sent {
		filled = width * sent / history
	}
	return strings.Repeat("█", filled) + strings.Repeat("░", width-filled)
}

// wrapped breaks a text into lines, each but the first behind an indentation.
func wrapped(text, indent string) string {
	const width = 100
	var b strings.Builder
	column := 0
	for _, w := range strings.Fields(text) {
		n := len([]rune(w))
		switch {
		case column == 0:
		case column+1+n > width:
			b.WriteString("\n" + indent)
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(w)
		column += n
	}
	return b.String()
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
