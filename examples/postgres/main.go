// Command postgres runs several replicas of one agent on one Postgres, with no other coordinator. The customers' turns go
// to the replicas in turn, as behind a load balancer; in the end it proves from the database that every message was
// noted once, whoever noted it.
//
// It writes to the database that -dsn or ADKMEMORY_DSN names. Without one it starts a throwaway server, if Postgres is
// installed here. It runs offline: the agent's model is scripted, and notes are written without a model.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/adksession"
	"github.com/adkmemory/adkmemory/backends/pgtest"
	"github.com/adkmemory/adkmemory/backends/postgres"
	"github.com/adkmemory/adkmemory/examples/internal/stage"
	"github.com/adkmemory/adkmemory/middleware"
)

// app is the ADK app that the example writes under, and deletes before and after.
const app = "postgres-example"

const (
	replicas  = 3
	customers = 8
	turns     = 12
)

const help = `This example needs Postgres: installed, so that it can start a throwaway server, or a database that it may write to. In
that it makes the tables it lacks, writes under the app "` + app + `" only, and deletes what it wrote. For instance:

    docker run --rm -d --name adkmemory -p 5432:5432 -e POSTGRES_PASSWORD=secret postgres:17
    ADKMEMORY_DSN='postgres://postgres:secret@localhost:5432/postgres?sslmode=disable' go run ./examples/postgres

Three replicas of one agent will then serve eight customers, and prove that each message was noted once.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Getenv); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "postgres:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has run
	}
}

func run(ctx context.Context, args []string, out io.Writer, getenv func(string) string) (err error) {
	flags := flag.NewFlagSet("postgres", flag.ContinueOnError)
	flags.SetOutput(out)
	dsn := flags.String("dsn", getenv("ADKMEMORY_DSN"), "Postgres `connection`, a URL or a list of key=value; default: ADKMEMORY_DSN")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case *dsn != "":
	case pgtest.Installed():
		fmt.Fprintln(out, "No database is named, so a throwaway server is started. (-dsn or ADKMEMORY_DSN names one.)")
		cluster, err := pgtest.NewCluster(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, cluster.Remove()) }()
		*dsn = cluster.DSN()
	default:
		_, err := fmt.Fprint(out, help)
		return err
	}
	var fleet []*replica
	defer func() {
		for _, r := range fleet {
			err = errors.Join(err, r.close(context.WithoutCancel(ctx)))
		}
	}()
	for range replicas {
		r, err := newReplica(ctx, *dsn)
		if err != nil {
			return err
		}
		fleet = append(fleet, r)
	}
	if err := fleet[0].store.DeleteApp(ctx, app); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d replicas, %d customers, %d turns each. Every turn goes to another replica.\n\n", replicas, customers, turns)
	if err := serve(ctx, fleet); err != nil {
		return err
	}
	for i, r := range fleet {
		stats := r.mem.Stats()
		fmt.Fprintf(out, "replica %d   wrote %2d observations and %2d reflections, and gave way to another %d times\n",
			i+1, stats.Observations, stats.Reflections, stats.Conflicts)
	}
	if err := prove(ctx, out, fleet[0].store); err != nil {
		return err
	}
	return fleet[0].store.DeleteApp(ctx, app)
}

// replica is what one process of a service holds.
type replica struct {
	store  *postgres.Store
	mem    *middleware.Middleware
	runner *runner.Runner
}

func newReplica(ctx context.Context, dsn string) (_ *replica, err error) {
	store, err := postgres.Open(ctx, dsn)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, store.Close())
		}
	}()
	sessions, err := adksession.New(ctx, store.DB(), adksession.Config{})
	if err != nil {
		return nil, err
	}
	mem, err := middleware.New(middleware.Config{
		Enabled: true, Extractive: true,
		// Small numbers, so that a short conversation shows what a long one does.
		MessageTokenThreshold: 100, ObservationTokenThreshold: 100, MaxMessageTokenBudget: 200,
	}, middleware.Deps{Store: store})
	if err != nil {
		return nil, err
	}
	clerk, err := llmagent.New(llmagent.Config{Name: "clerk", Model: mem.Model(stage.Model{Label: "scripted", Reply: reply})})
	if err != nil {
		return nil, err
	}
	r, err := runner.New(runner.Config{AppName: app, Agent: clerk, SessionService: sessions, AutoCreateSession: true})
	if err != nil {
		return nil, err
	}
	return &replica{store, mem, r}, mem.Start(ctx)
}

func (r *replica) close(ctx context.Context) error {
	return errors.Join(r.mem.Stop(ctx), r.store.Close())
}

// serve lets all customers speak at the same time, each turn to another replica.
func serve(ctx context.Context, fleet []*replica) error {
	errs := make([]error, customers)
	var all sync.WaitGroup
	for c := range customers {
		all.Go(func() {
			for turn := range turns {
				r := fleet[(c+turn)%len(fleet)]
				line := fmt.Sprintf("Order %d-%02d: %d crates of %s, to be delivered to gate %d before %d o'clock, please.",
					c, turn, 3+turn, goods[(c+turn)%len(goods)], 1+c, 7+turn)
				if _, err := stage.Say(ctx, r.runner, customer(c), "orders", line); err != nil {
					errs[c] = fmt.Errorf("customer %d, turn %d: %w", c, turn, err)
					return
				}
			}
		})
	}
	all.Wait()
	// Only a demonstration waits for the notes; an agent never needs to.
	for c := range customers {
		for _, r := range fleet {
			errs = append(errs, r.mem.Flush(ctx, backends.SessionKey{App: app, User: customer(c), Session: "orders"}))
		}
	}
	return errors.Join(errs...)
}

func customer(c int) string { return fmt.Sprintf("customer-%d", c) }

// prove reads the archive: within a session the ranges of its observations must touch without gap or overlap.
func prove(ctx context.Context, out io.Writer, store backends.Archive) error {
	notes, messages := 0, int64(0)
	for c := range customers {
		stored, err := store.ListNotes(ctx, backends.SessionKey{App: app, User: customer(c), Session: "orders"}, backends.NoteQuery{})
		if err != nil {
			return err
		}
		next := int64(0)
		for _, n := range stored {
			if n.Generation > 0 {
				continue // a reflection is over notes
			}
			if n.Range.Start != next {
				return fmt.Errorf("%s: a note begins at message %d, but message %d was next", customer(c), n.Range.Start, next)
			}
			next = n.Range.End + 1
			notes++
		}
		messages += next
	}
	_, err := fmt.Fprintf(out, "\nThe database holds %d observations over %d messages: no message twice, none left out between two notes.\n", notes, messages)
	return err
}

// reply is all that the scripted model knows.
func reply(*model.LLMRequest) *genai.Content {
	return genai.NewContentFromText("Noted, it will be on the next van.", genai.RoleModel)
}

var goods = []string{"lemons", "basil", "flour", "tomatoes", "olive oil"}
