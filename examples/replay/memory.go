package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/go-viper/mapstructure/v2"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/backends/postgres"
	"github.com/adkmemory/adkmemory/backends/sqlite"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/observer"
	"github.com/adkmemory/adkmemory/middleware/reflector"
)

// stopTimeout bounds how long the notes that are still being written at the end are waited for.
const stopTimeout = time.Minute

// openMemory builds the memory that the flags ask for. Notes are written without a model, so a replay needs no network.
func openMemory(ctx context.Context, o options, stderr io.Writer) (memory, error) {
	cfg, err := configure(o.set)
	if err != nil {
		return memory{}, err
	}
	store, closeStore, err := openStore(ctx, o)
	if err != nil {
		return memory{}, err
	}
	var writer observer.Observer = observer.NewExtractive(observer.ExtractiveConfig{})
	if o.latency > 0 {
		writer = slowObserver{writer, o.latency}
	}
	mem, err := middleware.New(cfg, middleware.Deps{
		Store:     store,
		Observer:  writer,
		Reflector: reflector.NewExtractive(reflector.ExtractiveConfig{}),
		Logger:    slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err == nil {
		err = mem.Start(ctx)
	}
	if err != nil {
		return memory{}, errors.Join(err, closeStore())
	}
	return memory{
		store:   store,
		wrap:    mem.Model,
		dropped: func() int { return int(mem.Stats().DroppedHardLimit) },
		stop: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, stopTimeout)
			defer cancel()
			return errors.Join(mem.Stop(ctx), closeStore())
		},
	}, nil
}

// configure returns the default configuration with the -set flags over it.
func configure(set settings) (middleware.Config, error) {
	cfg := middleware.Config{Enabled: true}
	decoder, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result:           &cfg,
		TagName:          "json",
		WeaklyTypedInput: true,
		ErrorUnused:      true,
		DecodeHook: mapstructure.ComposeDecodeHookFunc(
			mapstructure.StringToTimeDurationHookFunc(), mapstructure.StringToSliceHookFunc(",")),
	})
	if err != nil {
		return cfg, err
	}
	if err := decoder.Decode(map[string]any(set)); err != nil {
		return cfg, fmt.Errorf("-set: %w", err)
	}
	return cfg, nil
}

// openStore opens the backend and returns what closes it again.
func openStore(ctx context.Context, o options) (backends.Store, func() error, error) {
	switch o.backend {
	case "inmemory":
		store := inmemory.New()
		return store, store.Close, nil
	case "sqlite":
		path, remove := o.dsn, func() error { return nil }
		if path == "" {
			dir, err := os.MkdirTemp("", "replay-")
			if err != nil {
				return nil, nil, err
			}
			path, remove = filepath.Join(dir, "memory.db"), func() error { return os.RemoveAll(dir) }
		}
		store, err := sqlite.Open(ctx, path)
		if err != nil {
			return nil, nil, errors.Join(err, remove())
		}
		return store, func() error { return errors.Join(store.Close(), remove()) }, nil
	case "postgres":
		store, err := postgres.Open(ctx, o.dsn)
		if err != nil {
			return nil, nil, err
		}
		return store, store.Close, nil
	}
	return nil, nil, fmt.Errorf("-backend %q: must be inmemory, sqlite or postgres", o.backend)
}

// slowObserver is an Observer that takes its time, as a model does.
type slowObserver struct {
	observer.Observer
	latency time.Duration
}

func (s slowObserver) Observe(ctx context.Context, req observer.Request) (observer.Note, error) {
	timer := time.NewTimer(s.latency)
	defer timer.Stop()
	select {
	case <-timer.C:
		return s.Observer.Observe(ctx, req)
	case <-ctx.Done():
		return observer.Note{}, ctx.Err()
	}
}
