// Command replay runs recorded conversations through a real ADK runner and agent with memory, and measures what is
// sent to the model. It needs no network: the model replays the recorded answers, the tools the recorded results, and
// notes are written without a model.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/adkmemory/adkmemory/examples/internal/transcript"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "replay:", err)
		}
		stop()
		os.Exit(1) //nolint:gocritic // stop has run
	}
}

// options are the flags.
type options struct {
	transcript string
	backend    string
	dsn        string
	concat     int
	latency    time.Duration
	json       bool
	generate   bool
	set        settings
}

// settings collects repeated -set flags.
type settings map[string]any

func (s settings) String() string { return "" }

func (s settings) Set(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return errors.New("want key=value")
	}
	s[key] = value
	return nil
}

func parse(args []string, stderr io.Writer) (options, error) {
	o := options{set: settings{}}
	flags := flag.NewFlagSet("replay", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.transcript, "transcript", "", "`file` with the recorded conversations")
	flags.StringVar(&o.backend, "backend", "inmemory", "where notes are kept: inmemory, sqlite or postgres")
	flags.StringVar(&o.dsn, "dsn", "", "the database: a file for sqlite (default a temporary one), a URL for postgres")
	flags.IntVar(&o.concat, "concat", 1, "join every `N` sessions into one long conversation")
	flags.DurationVar(&o.latency, "observer-latency", 0, "how much slower the Observer is made")
	flags.BoolVar(&o.json, "json", false, "print one JSON object a session, and a last one with the total")
	flags.BoolVar(&o.generate, "generate", false,
		"run generated conversations with everything that is hard; with -transcript also write them to that file")
	flags.Var(o.set, "set", "override a configuration field, `key=value`; repeatable")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.transcript == "" && !o.generate {
		return o, errors.New("-transcript is required, or -generate")
	}
	if o.concat < 1 {
		return o, errors.New("-concat must be at least 1")
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	dramas, err := load(o)
	if err != nil {
		return err
	}
	m, err := openMemory(ctx, o, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.stop(context.WithoutCancel(ctx))) }()

	draw, wipe := progressOn(stderr)
	show := func(r Result) {
		wipe()
		if o.json {
			err = errors.Join(err, showJSON(stdout, r))
			return
		}
		showLine(stdout, r)
	}
	if !o.json {
		_, _ = fmt.Fprintln(stdout, header)
	}
	total, playErr := replay(ctx, dramas, m, show, draw)
	if playErr != nil {
		return errors.Join(err, playErr)
	}
	show(total)
	if !o.json {
		showTotal(stdout, total)
	}
	return err
}

// load returns what is to be run.
func load(o options) ([]drama, error) {
	var conversations []transcript.Conversation
	var dramas []drama
	var err error
	if o.generate {
		conversations = generated()
		dramas = scenarios()
		if o.transcript != "" {
			err = writeTranscript(o.transcript, conversations)
		}
	} else {
		conversations, err = transcript.Open(o.transcript)
	}
	if err != nil {
		return nil, err
	}
	var recordings []drama
	for _, c := range transcript.Concat(conversations, o.concat) {
		if len(c.Messages) > 0 {
			recordings = append(recordings, recorded(newScript(c)))
		}
	}
	return append(recordings, dramas...), nil
}

func writeTranscript(path string, conversations []transcript.Conversation) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(transcript.Write(f, conversations), f.Close())
}
