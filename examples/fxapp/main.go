// Fxapp is an agent with memory as a service: configured by a file and the environment, SQLite or Postgres by DSN, spans
// to an OTLP collector, and a shutdown that loses nothing.
//
//	go run ./examples/fxapp -config examples/fxapp/memory.yaml
//	curl -H 'X-User: anna' -d '{"session":"1","text":"hello"}' localhost:8080/ask
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"google.golang.org/adk/v2/model"

	"github.com/adkmemory/adkmemory/backends/adksession"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/config"
	"github.com/adkmemory/adkmemory/middleware/middlewarefx"
	"github.com/adkmemory/adkmemory/middleware/models"
	"github.com/adkmemory/adkmemory/middleware/redact"
)

// Settings are the library's and this service's own.
type Settings struct {
	config.Settings `json:",squash"`

	// Service is where and as whom the service answers.
	Service struct {
		Listen      string `json:"listen"` // default :8080
		Instruction string `json:"instruction"`
		Provider    string `json:"provider"`   // of the agent's model
		Model       string `json:"model"`      // of the agent
		Redact      bool   `json:"redact"`     // keep secrets and personal data out of memory
		Encryption  string `json:"encryption"` // keys as encrypted.ParseRing reads them; better in the environment
		OTLP        string `json:"otlp"`       // URL of a collector; empty for none
	} `json:"service"`
}

// stopTimeout is how long the service takes to finish answers and observations after SIGTERM.
const stopTimeout = time.Minute

func main() {
	file := flag.String("config", "memory.yaml", "configuration `file`")
	flag.Parse()
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	var s Settings
	s.Service.Listen = ":8080"
	if err := config.LoadInto(&s, config.Source{File: *file, Environment: os.Environ()}); err != nil {
		log.Error("configuration", "error", err)
		os.Exit(2)
	}
	if err := serve(application(s, log)); err != nil {
		log.Error("service", "error", err)
		os.Exit(1)
	}
}

// serve runs the application until SIGINT or SIGTERM. Unlike fx.App.Run it listens for them before it starts, so that one
// that comes early is not fatal either.
func serve(app *fx.App) error {
	ended := app.Wait()
	start, cancel := context.WithTimeout(context.Background(), app.StartTimeout())
	defer cancel()
	if err := app.Start(start); err != nil {
		return err
	}
	<-ended
	stop, cancel := context.WithTimeout(context.Background(), app.StopTimeout())
	defer cancel()
	return app.Stop(stop)
}

func application(s Settings, log *slog.Logger) *fx.App {
	return fx.New(
		fx.WithLogger(func() fxevent.Logger { return quietLogger{&fxevent.SlogLogger{Logger: log}} }),
		fx.StopTimeout(stopTimeout),
		fx.Supply(s, s.ObservationalMemory, log),
		fx.Provide(
			openTracing,
			openDatabase,
			fx.Annotate(func() *models.Registry { return models.New(models.Config{}) }, fx.As(new(middleware.Models))),
			newRedactor,
			func(sessions *adksession.Service) middleware.Compactor { return sessions.CompactMessages },
			newAgent,
			newRunner,
			newServer,
		),
		middlewarefx.Module,
		fx.Invoke(func(*server) {}),
	)
}

// newRedactor returns nil, which is no redactor, unless it is asked for.
func newRedactor(s Settings) (middleware.Redactor, error) {
	if !s.Service.Redact {
		return nil, nil
	}
	return redact.New(redact.Config{})
}

// agentModel finds the agent's model; memory writes its notes with the same one unless its own section names another.
func agentModel(ctx context.Context, s Settings, registry middleware.Models) (model.LLM, error) {
	return registry.NewModel(ctx, s.Service.Provider, s.Service.Model)
}

// quietLogger keeps fx's failures and leaves out its chatter.
type quietLogger struct{ fxevent.Logger }

// LogEvent implements fxevent.Logger.
func (l quietLogger) LogEvent(e fxevent.Event) {
	raw, _ := json.Marshal(e)
	var failed struct{ Err any }
	_ = json.Unmarshal(raw, &failed)
	if failed.Err != nil {
		l.Logger.LogEvent(e)
	}
}
