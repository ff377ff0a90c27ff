package main

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/fx"
	"gorm.io/gorm"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/runner"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/adksession"
	"github.com/adkmemory/adkmemory/backends/encrypted"
	"github.com/adkmemory/adkmemory/backends/open"
	"github.com/adkmemory/adkmemory/middleware"
)

const appName = "fxapp"

// openTimeout bounds connecting to the database and bringing its tables up to date.
const openTimeout = time.Minute

// openTracing exports spans when a collector is named, those of ADK included.
func openTracing(s Settings, lc fx.Lifecycle) (trace.TracerProvider, error) {
	if s.Service.OTLP == "" {
		return noop.NewTracerProvider(), nil
	}
	exporter, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(s.Service.OTLP))
	if err != nil {
		return nil, fmt.Errorf("otlp: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	otel.SetTracerProvider(provider)
	lc.Append(fx.StopHook(provider.Shutdown))
	return provider, nil
}

// database is one database with two tenants: memory, and the sessions of ADK.
type database struct {
	fx.Out

	Store    backends.Store
	Sessions *adksession.Service
}

// openDatabase depends on tracing so that the spans of the last commits are still exported.
func openDatabase(s Settings, lc fx.Lifecycle, _ trace.TracerProvider) (database, error) {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	store, err := open.Open(ctx, s.Database.DSN)
	if err != nil {
		return database{}, err
	}
	lc.Append(fx.StopHook(store.Close))
	sessions, err := adksession.New(ctx, store.(interface{ DB() *gorm.DB }).DB(), adksession.Config{})
	if err != nil {
		return database{}, err
	}
	if s.Service.Encryption != "" {
		keys, err := encrypted.ParseRing(s.Service.Encryption)
		if err != nil {
			return database{}, err
		}
		if store, err = encrypted.New(store, encrypted.Config{Keys: keys}); err != nil {
			return database{}, err
		}
	}
	return database{Store: store, Sessions: sessions}, nil
}

func newAgent(s Settings, mem *middleware.Middleware, registry middleware.Models) (agent.Agent, error) {
	llm, err := agentModel(context.Background(), s, registry)
	if err != nil {
		return nil, err
	}
	return llmagent.New(llmagent.Config{Name: "assistant", Model: mem.Model(llm), Instruction: s.Service.Instruction})
}

func newRunner(a agent.Agent, sessions *adksession.Service) (*runner.Runner, error) {
	return runner.New(runner.Config{AppName: appName, Agent: a, SessionService: sessions, AutoCreateSession: true})
}
