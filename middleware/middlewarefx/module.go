// Package middlewarefx wires the middleware into an fx application: [Module] needs a store, such as sqlitefx.Module
// provides, and a supplied middleware.Config. Everything else is optional.
package middlewarefx

import (
	"log/slog"
	"sync"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/fx"

	"google.golang.org/adk/v2/model"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/observer"
	"github.com/adkmemory/adkmemory/middleware/reflector"
	"github.com/adkmemory/adkmemory/middleware/token"
	"github.com/adkmemory/adkmemory/retriever"
)

// Module provides a [middleware.Middleware]. It starts with the application and, when that stops, completes what was
// triggered before the store closes.
var Module = fx.Module("adkmemory", fx.Provide(New), fx.Invoke(func(*middleware.Middleware) {}))

// Layers is the value group of the retriever's layers; see [AsLayer].
const Layers = `group:"adkmemory.layers"`

// AsLayer annotates a constructor of a retriever.Layer, so that what it makes joins the retriever:
// fx.Provide(middlewarefx.AsLayer(newLayer)).
func AsLayer(constructor any) any {
	return fx.Annotate(constructor, fx.As(new(retriever.Layer)), fx.ResultTags(Layers))
}

// Params is what [New] takes from the application.
type Params struct {
	fx.In

	Lifecycle fx.Lifecycle
	Config    middleware.Config `optional:"true"` // without one memory is off
	Store     backends.Store    `optional:"true"` // required when memory is on

	Model          model.LLM            `optional:"true"`
	Models         middleware.Models    `optional:"true"`
	Observer       observer.Observer    `optional:"true"`
	Reflector      reflector.Reflector  `optional:"true"`
	Retriever      middleware.Retriever `optional:"true"` // replaces the one that is made of Layers
	Layers         []retriever.Layer    `group:"adkmemory.layers"`
	RetrieverCfg   retriever.Config     `optional:"true"`
	Redactor       middleware.Redactor  `optional:"true"`
	Compactor      middleware.Compactor `optional:"true"`
	Counter        token.Counter        `optional:"true"`
	Logger         *slog.Logger         `optional:"true"`
	TracerProvider trace.TracerProvider `optional:"true"`
	MeterProvider  metric.MeterProvider `optional:"true"`
	WaitGroup      *sync.WaitGroup      `optional:"true"`
}

// Result is what [New] provides.
type Result struct {
	fx.Out

	Middleware *middleware.Middleware
}

// New makes the middleware and ties it to the application's life.
func New(p Params) (Result, error) {
	deps := middleware.Deps{
		Model: p.Model, Models: p.Models, Observer: p.Observer, Reflector: p.Reflector, Retriever: p.Retriever, Redactor: p.Redactor,
		Counter: p.Counter, Logger: p.Logger, TracerProvider: p.TracerProvider, MeterProvider: p.MeterProvider, WaitGroup: p.WaitGroup,
	}
	if p.Store != nil {
		deps.Store = p.Store
	}
	if p.Retriever == nil && len(p.Layers) > 0 {
		if p.RetrieverCfg.Logger == nil {
			p.RetrieverCfg.Logger = p.Logger
		}
		r, err := retriever.New(p.RetrieverCfg, p.Layers...)
		if err != nil {
			return Result{}, err
		}
		deps.Retriever = r
	}
	m, err := middleware.New(p.Config, deps)
	if err != nil {
		return Result{}, err
	}
	if p.Compactor != nil {
		m.SetCompactor(p.Compactor)
	}
	p.Lifecycle.Append(fx.StartStopHook(m.Start, m.Stop))
	return Result{Middleware: m}, nil
}
