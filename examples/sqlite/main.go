// Command sqlite keeps everything of an agent in one file: ADK's sessions, the notes, and the messages behind them. It
// holds a conversation in two halves, as two processes would, finds a sentence that left the session long ago, and then
// forgets the customer.
//
// It runs offline: the agent's model is scripted, and notes are written without a model.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/adksession"
	"github.com/adkmemory/adkmemory/backends/sqlite"
	"github.com/adkmemory/adkmemory/examples/internal/stage"
	"github.com/adkmemory/adkmemory/middleware"
)

// key is whose memory it is. ADK's runner is given the same app, user and session.
var key = backends.SessionKey{App: "workshop", User: "ines", Session: "bicycle"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "sqlite:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has run
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("sqlite", flag.ContinueOnError)
	flags.SetOutput(out)
	path := flags.String("db", "", "SQLite `file`; default: a new one, removed at the end")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *path == "" {
		dir, err := os.MkdirTemp("", "adkmemory-sqlite")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		*path = filepath.Join(dir, "agent.db")
	}
	half := len(lines) / 2
	fmt.Fprintln(out, "The first process opens the file.")
	if err := visit(ctx, out, *path, lines[:half]); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nIt ends. A second process opens the file and goes on.")
	if err := visit(ctx, out, *path, lines[half:]); err != nil {
		return err
	}
	return lookBack(ctx, out, *path)
}

// visit is the life of one process: open, converse, close.
func visit(ctx context.Context, out io.Writer, path string, lines []line) (err error) {
	store, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	// ADK's sessions live in the same file. Writes go through one connection, reads through others.
	sessions, err := adksession.New(ctx, store.DB(), adksession.Config{Reader: store.Reader(), KeepTurns: 2})
	if err != nil {
		return err
	}
	mem, err := middleware.New(middleware.Config{
		Enabled: true, Extractive: true,
		// Small numbers, so that a short conversation shows what a long one does.
		MessageTokenThreshold: 120, ObservationTokenThreshold: 100, MaxMessageTokenBudget: 250,
	}, middleware.Deps{Store: store})
	if err != nil {
		return err
	}
	// What is noted leaves the session's events; the archive keeps the words.
	mem.SetCompactor(sessions.CompactMessages)
	if err := mem.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, mem.Stop(context.WithoutCancel(ctx))) }()

	mechanic, err := llmagent.New(llmagent.Config{
		Name: "mechanic", Model: mem.Model(stage.Model{Label: "scripted", Reply: reply}), Instruction: "You repair bicycles.",
	})
	if err != nil {
		return err
	}
	r, err := runner.New(runner.Config{AppName: key.App, Agent: mechanic, SessionService: sessions, AutoCreateSession: true})
	if err != nil {
		return err
	}
	for _, l := range lines {
		said, err := stage.Say(ctx, r, key.User, key.Session, l.ask)
		if err != nil {
			return err
		}
		// Only a demonstration waits for the notes of a turn; an agent never needs to.
		if err := mem.Flush(ctx, key); err != nil {
			return err
		}
		fmt.Fprintf(out, "\n  ines      %s\n  mechanic  %s\n", l.ask, said[len(said)-1].Text)
		if err := count(ctx, out, store, sessions); err != nil {
			return err
		}
	}
	return nil
}

// count shows what the file holds about the session.
func count(ctx context.Context, out io.Writer, store backends.Store, sessions session.Service) error {
	got, err := sessions.Get(ctx, &session.GetRequest{AppName: key.App, UserID: key.User, SessionID: key.Session})
	if err != nil {
		return err
	}
	snap, err := store.Load(ctx, key, backends.Stamp{})
	if err != nil {
		return err
	}
	archived, err := store.ListMessages(ctx, key, backends.MessageQuery{})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "            in the session %2d messages · in the archive %2d · observations %d · reflections %d\n",
		got.Session.Events().Len(), len(archived), len(snap.Observations), len(snap.Reflections))
	return err
}

// lookBack finds old words again, then forgets the customer.
func lookBack(ctx context.Context, out io.Writer, path string) (err error) {
	store, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	const words = "serial number frame"
	query := backends.SearchQuery{App: key.App, User: key.User, Text: words, Kinds: []backends.Kind{backends.KindMessage}, Limit: 1}
	found, err := store.Search(ctx, query)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nWho asks the archive for “%s” gets the exact words, whatever became of the session:\n", words)
	for _, f := range found {
		fmt.Fprintf(out, "  %s, message %d: %s\n", f.Message.Author, f.Message.Index, f.Text())
	}
	if err := store.DeleteUser(ctx, key.App, key.User); err != nil {
		return err
	}
	if found, err = store.Search(ctx, query); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\nIn the end the customer is forgotten, in one call. The same search finds %d messages.\n", len(found))
	return err
}

// reply is all that the scripted model knows.
func reply(req *model.LLMRequest) *genai.Content {
	last := stage.Text(req.Contents[len(req.Contents)-1])
	for _, l := range lines {
		if l.ask == last {
			return genai.NewContentFromText(l.answer, genai.RoleModel)
		}
	}
	return genai.NewContentFromText("I see.", genai.RoleModel)
}

type line struct{ ask, answer string }

var lines = []line{
	{"My bicycle makes a grinding noise when I go uphill. It is a blue Koga from 2014 and has done 9,400 kilometres.",
		"That sounds like chain and cassette. Do you have its serial number?"},
	{"The serial number on the frame is WK4471902. I bought it second hand in Utrecht from a man called Pieter.",
		"Thank you, with that I can order the right parts."},
	{"The chain was changed in March 2025, the cassette never. Please do not spend more than 180 euros without asking me.",
		"Then I change both at once. It will be about 95 euros."},
	{"I also want better lights. I ride home at eleven in the evening, along the canal, and there are no lamps at all.",
		"A dynamo in the hub gives 80 lux, for 140 euros more. That is past your limit, so I ask."},
	{"My colleague Bram will bring it on Monday, because I am in Lyon until Wednesday. His number is 06 4455 1020.",
		"I call Bram when it is ready."},
	{"One more thing: the rear brake squeals in the rain. It did so from the day I bought it, and I stopped noticing.",
		"The pads are glazed. New ones are 12 euros."},
	{"I changed my mind about the lights. A dynamo is too much; take the ones with a battery, but with a switch I can feel.",
		"Battery lights with a big switch: 38 euros, and you stay below 180."},
	{"Is it true that I could ride to Lyon on it? It is 900 kilometres. I would go in June 2026 with my sister Tilda.",
		"With new tyres, yes. Come by in May and I look it over."},
}
