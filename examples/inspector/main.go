// Command inspector holds a few short conversations with an agent that has a memory, and then serves a page that shows
// what the agent remembers. It runs offline: the agent's model is scripted, and notes are written without a model.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/inspect"
	"github.com/adkmemory/adkmemory/retriever"
	"github.com/adkmemory/adkmemory/retriever/layers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "inspector:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop has run
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("inspector", flag.ContinueOnError)
	flags.SetOutput(out)
	addr := flags.String("addr", "127.0.0.1:8484", "`address` to serve the page on")
	if err := flags.Parse(args); err != nil {
		return err
	}

	// The memory. A program that is to remember tomorrow opens sqlite or postgres instead.
	store := inmemory.New()
	defer func() { err = errors.Join(err, store.Close()) }()
	knowledge, err := retriever.New(retriever.Config{}, layers.UserKnowledge(store))
	if err != nil {
		return err
	}
	config := middleware.Config{
		Enabled:    true,
		Extractive: true, // notes by sentence selection, without a model
		// Small numbers, so that a short conversation shows what a long one does.
		MessageTokenThreshold: 150, ObservationTokenThreshold: 180, ReflectionConsolidationThreshold: 3,
		MaxMessageTokenBudget: 450, MemoryTokenBudget: 600,
		RecordTurns: 100, // for the page
	}
	story := new(clock)
	mem, err := middleware.New(config, middleware.Deps{Store: store, Retriever: knowledge, Now: story.Now})
	if err != nil {
		return err
	}
	if err := mem.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, mem.Stop(context.WithoutCancel(ctx))) }()

	_, _ = fmt.Fprintf(out, "Holding %d conversations ...\n", len(conversations))
	if err := converse(ctx, mem, store, story); err != nil {
		return err
	}

	// The page.
	page, err := inspect.New(inspect.Config{
		Store: store, Apps: []string{app}, Turns: mem, Memory: config, Authorize: fromThisComputer,
	})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/memory/", http.StripPrefix("/memory", page))
	mux.Handle("/{$}", http.RedirectHandler("/memory/", http.StatusFound))
	return serve(ctx, *addr, mux, out)
}

// fromThisComputer allows whom the operating system lets open a browser here. The check of the host keeps out pages of
// other sites whose name was made to point at this computer. A real service asks for its operators' login instead.
func fromThisComputer(r *http.Request, _, _ string) error {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return errors.New("not from this computer")
}

func serve(ctx context.Context, addr string, h http.Handler, out io.Writer) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(listener) }()
	_, _ = fmt.Fprintf(out, "Open http://%s/memory/ and press Ctrl-C here when done.\n", listener.Addr())
	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err = server.Shutdown(grace)
	if served := <-stopped; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
