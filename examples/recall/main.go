// Command recall stores recorded conversations and measures how well their messages are found again: for each question
// it searches the session by the question's words and looks for the messages that answer it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "recall:", err)
		}
		stop()
		os.Exit(1) //nolint:gocritic // stop has run
	}
}

// options are the flags.
type options struct {
	transcript string
	qa         string
	backend    string
	dsn        string
	ks         []int
	hybrid     bool
	json       bool
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("recall", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.transcript, "transcript", "", "`file` with the recorded conversations")
	flags.StringVar(&o.qa, "qa", "", "`file` with the questions and the ids of the messages that answer them")
	flags.StringVar(&o.backend, "backend", "inmemory", "where messages are kept: inmemory, sqlite or postgres")
	flags.StringVar(&o.dsn, "dsn", "", "the database: a file for sqlite (default a temporary one), a URL for postgres")
	ks := flags.String("k", "5,10,20", "how many results are looked at, `comma-separated`")
	flags.BoolVar(&o.hybrid, "hybrid", false, "join full-text search and the local embedder")
	flags.BoolVar(&o.json, "json", false, "print one JSON object")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.transcript == "" || o.qa == "" {
		return o, errors.New("-transcript and -qa are required")
	}
	for _, text := range strings.Split(*ks, ",") {
		k, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || k < 1 || k > 500 {
			return o, fmt.Errorf("-k %q: want numbers from 1 to 500", *ks)
		}
		o.ks = append(o.ks, k)
	}
	slices.Sort(o.ks)
	o.ks = slices.Compact(o.ks)
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	questions, err := readQuestions(o.qa)
	if err != nil {
		return err
	}
	l, err := openLibrary(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close(context.WithoutCancel(ctx))) }()
	if err := l.store(ctx, o.transcript); err != nil {
		return err
	}
	report, err := ask(ctx, l, questions, o.ks)
	if err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(stdout).Encode(report)
	}
	return report.show(stdout)
}
