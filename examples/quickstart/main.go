// Command quickstart shows an ADK agent with a memory: a conversation that outgrows its window, the notes that take the
// place of what left it, and what is still known when the program is run a second time.
//
// It runs offline, with a small built-in model that is no language model at all. Set GOOGLE_API_KEY, or OPENAI_BASE_URL
// and OPENAI_MODEL, to talk to a real one.
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

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/sqlite"
	"github.com/adkmemory/adkmemory/middleware"
)

// key is whose memory it is. ADK's runner is given the same app, user and session.
var key = backends.SessionKey{App: "quickstart", User: "ada", Session: "holiday"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Getenv); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has run
	}
}

func run(ctx context.Context, args []string, out io.Writer, getenv func(string) string) (err error) {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(out)
	db := flags.String("db", filepath.Join(os.TempDir(), "adkmemory-quickstart.db"), "SQLite `file` with the memory")
	reset := flags.Bool("reset", false, "forget everything first")
	if err := flags.Parse(args); err != nil {
		return err
	}
	llm, err := chooseModel(ctx, getenv)
	if err != nil {
		return err
	}

	// The memory: a store, the middleware, and below one changed line in the agent.
	store, err := sqlite.Open(ctx, *db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	mem, err := middleware.New(middleware.Config{
		Enabled:    true,
		Extractive: llm.builtIn, // notes are written by the agent's model, unless that cannot write
		// Small numbers, so that a short conversation shows what a long one does.
		MessageTokenThreshold:     400,
		ObservationTokenThreshold: 500,
		MaxMessageTokenBudget:     600,
	}, middleware.Deps{Store: store})
	if err != nil {
		return err
	}
	if err := mem.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, mem.Stop(context.WithoutCancel(ctx))) }()

	// The agent, as it would be without memory, but for mem.Model.
	meter := &meter{LLM: llm.LLM}
	weather, err := newWeatherTool()
	if err != nil {
		return err
	}
	traveller, err := llmagent.New(llmagent.Config{
		Name:                 "travel_agent",
		Model:                mem.Model(meter),
		Instruction:          "You are a travel agent. You plan one holiday with one customer. Be brief and friendly.",
		Tools:                []tool.Tool{weather},
		BeforeModelCallbacks: []llmagent.BeforeModelCallback{meter.before},
	})
	if err != nil {
		return err
	}
	r, err := runner.New(runner.Config{
		AppName: key.App, Agent: traveller, SessionService: session.InMemoryService(), AutoCreateSession: true,
	})
	if err != nil {
		return err
	}

	if *reset {
		if err := store.DeleteSession(ctx, key); err != nil {
			return err
		}
	}
	show := &printer{out: out, store: store}
	known, err := show.welcome(ctx, llm, *db)
	if err != nil {
		return err
	}
	lines := firstVisit
	if known {
		lines = nextVisit
	}
	for i, line := range lines {
		answer, err := ask(ctx, r, line)
		if err != nil {
			return err
		}
		// Only a demonstration waits for the notes of a turn; an agent never needs to.
		if err := mem.Flush(ctx, key); err != nil {
			return err
		}
		if err := show.turn(ctx, i+1, line, answer, meter); err != nil {
			return err
		}
	}
	show.goodbye(meter, known, *db)
	return nil
}

// ask runs one turn and returns what the agent said last.
func ask(ctx context.Context, r *runner.Runner, line string) (string, error) {
	answer := ""
	message := genai.NewContentFromText(line, genai.RoleUser)
	for event, err := range r.Run(ctx, key.User, key.Session, message, agent.RunConfig{}) {
		if err != nil {
			return "", err
		}
		if text := textOf(event.Content); text != "" {
			answer = text
		}
	}
	return answer, nil
}
