// Tracing prints the trace of a turn and of the background work that it triggered as trees. It needs no key and no
// server: the models are scripted.
//
//	go run ./examples/tracing
package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/sqlite"
	"github.com/adkmemory/adkmemory/middleware"
)

const maxTurns = 12

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	// A program would export to a collector: see examples/fxapp.
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	otel.SetTracerProvider(provider) // ADK's spans, and with them the turn, come from the global provider

	store, err := sqlite.Open(ctx, ":memory:")
	if err != nil {
		return err
	}
	defer store.Close()
	mem, err := middleware.New(
		middleware.Config{Enabled: true, MessageTokenThreshold: 150, ObservationTokenThreshold: 15},
		middleware.Deps{Store: store, Model: scripted{"note-writer", "- Anna books a flight to Lisbon."}, TracerProvider: provider},
	)
	if err != nil {
		return err
	}
	if err := mem.Start(ctx); err != nil {
		return err
	}
	assistant, err := llmagent.New(llmagent.Config{Name: "assistant", Model: mem.Model(scripted{"chat", "Noted."}), Instruction: "You book flights."})
	if err != nil {
		return err
	}
	r, err := runner.New(runner.Config{AppName: "tracing", Agent: assistant, SessionService: session.InMemoryService(), AutoCreateSession: true})
	if err != nil {
		return err
	}
	key := backends.SessionKey{App: "tracing", User: "anna", Session: "s1"}
	for i := 0; mem.Stats().Reflections == 0 && i < maxTurns; i++ {
		spans.Reset() // only the last turn is shown: the one whose background work has every part
		text := fmt.Sprintf("This is wish number %d for my trip to Lisbon in May: an aisle seat, a vegetarian meal, and a receipt by mail. "+
			"Please keep it together with what I have told you before, and change nothing of that.", i+1)
		for _, err := range r.Run(ctx, key.User, key.Session, genai.NewContentFromText(text, genai.RoleUser), agent.RunConfig{}) {
			if err != nil {
				return err
			}
		}
		if err := mem.Flush(ctx, key); err != nil {
			return err
		}
	}
	stop, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := mem.Stop(stop); err != nil {
		return err
	}
	printTrees(out, spans.GetSpans())
	return provider.Shutdown(ctx)
}

// scripted is a model that always says the same.
type scripted struct{ name, text string }

func (s scripted) Name() string { return s.name }

func (s scripted) GenerateContent(context.Context, *model.LLMRequest, bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		yield(&model.LLMResponse{
			Content:       genai.NewContentFromText(s.text, genai.RoleModel),
			UsageMetadata: &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 120, CandidatesTokenCount: 9},
			FinishReason:  genai.FinishReasonStop,
		}, nil)
	}
}
