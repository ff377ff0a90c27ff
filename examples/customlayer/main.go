// Command customlayer gives an agent a layer of its own: a team's calendar. For each question it prints the system
// prompt that the agent's model would get. It needs no network and no model.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/retriever"
	"github.com/adkmemory/adkmemory/retriever/layers"
)

func main() {
	if err := run(context.Background(), os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "customlayer:", err)
		os.Exit(1)
	}
}

// calendar is the layer: all it takes is a name and a method.
type calendar struct{ events []event }

type event struct {
	day   time.Time
	title string
}

// Name is the title of the layer's section too.
func (calendar) Name() string { return "Team Calendar" }

// Retrieve returns the events that share a word with the question, those with more common words first.
func (c calendar) Retrieve(_ context.Context, q retriever.Query) ([]retriever.Item, error) {
	var items []retriever.Item
	for _, e := range c.events {
		item := retriever.Item{Key: e.title, Title: e.day.Format("Monday, 2 January"), Text: e.title}
		for _, word := range q.Keywords {
			if strings.Contains(strings.ToLower(e.title), word) {
				item.Score++
			}
		}
		if item.Score > 0 {
			items = append(items, item)
		}
	}
	return items, nil
}

func run(ctx context.Context, out io.Writer, questions []string) error {
	if len(questions) == 0 {
		questions = []string{"When is the next release?", "Who reviews the release of the billing service?", "And what is it?"}
	}
	key := backends.SessionKey{App: "planner", User: "ada", Session: "slack:C1:7"}
	store := inmemory.New()
	for _, e := range []backends.Entry{
		{Kind: backends.KindKnowledge, Text: "Ada reviews every release of the billing service."},
		{Kind: backends.KindLearning, Title: "Release blocked by migrations", Text: "Run the migrations before the release."},
	} {
		if _, err := store.SaveEntry(ctx, key.App, key.User, e); err != nil {
			return err
		}
	}
	team := calendar{events: []event{
		{time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC), "Release of the billing service"},
		{time.Date(2026, 12, 4, 0, 0, 0, 0, time.UTC), "Release freeze begins"},
		{time.Date(2026, 12, 9, 0, 0, 0, 0, time.UTC), "Team dinner"},
	}}
	r, err := retriever.New(retriever.Config{}, append(layers.Standard(store), team)...)
	if err != nil {
		return err
	}
	asked := append(retriever.DefaultLayers(), team.Name())
	for _, question := range questions {
		res := r.Retrieve(ctx, retriever.Request{Query: question, Key: key, Layers: asked})
		if _, err := fmt.Fprintf(out, "=== %s\n%s\n\n", question, r.AssemblePrompt("You plan releases.", res)); err != nil {
			return err
		}
	}
	return nil
}
