package middleware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/sony/gobreaker/v2"
	"go.opentelemetry.io/otel/metric"

	"google.golang.org/adk/v2/model"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/buffer"
	"github.com/adkmemory/adkmemory/middleware/observer"
	"github.com/adkmemory/adkmemory/middleware/rawobs"
	"github.com/adkmemory/adkmemory/middleware/reflector"
	"github.com/adkmemory/adkmemory/middleware/token"
)

// Middleware gives agents a memory. Make one with [New], wrap the agent's model with [Middleware.Model], and call
// [Middleware.Start] and [Middleware.Stop] around the application's life. It is safe for concurrent use by any number
// of agents and sessions.
type Middleware struct {
	cfg   Config
	deps  Deps
	owner string // of leases: this process

	sessions  *lru.Cache[backends.SessionKey, *sessionState]
	layers    []string                 // of the retriever that a turn asks
	runs      *lru.Cache[string, *run] // by invocation id
	raw       *rawobs.Registry         // nil when off
	buffer    *buffer.Buffer[backends.SessionKey, job]
	breaker   *gobreaker.CircuitBreaker[observer.Note]
	compactor atomic.Pointer[Compactor]
	calibrate token.Calibration
	samples   atomic.Int64
	telemetry *telemetry
	stats     counters
	gaugesMu  sync.Mutex
	gauges    metric.Registration // from Start to Stop

	reflectorModel   model.LLM // nil when it is the Observer's
	extractObserver  observer.Observer
	extractReflector reflector.Reflector
}

// maxRuns bounds the invocations that the plugin keeps track of. ADK ends each with AfterRun, so this is a safety net.
const maxRuns = 10_000

// New checks the configuration and returns a middleware that does nothing until an agent uses its model. Every fault is
// reported at once, by field name; the error wraps [ErrInvalidConfig]. With memory disabled it needs no Deps.
func New(cfg Config, deps Deps) (*Middleware, error) {
	m := &Middleware{cfg: cfg.WithDefaults(), deps: deps.withDefaults(), owner: uuid.NewString()}
	if !cfg.Enabled {
		return m, nil
	}
	err := errors.Join(m.cfg.Validate(), m.resolveModels())
	if deps.Store == nil {
		err = errors.Join(err, fmt.Errorf("%w: Deps.Store is nil; open one, such as sqlite.Open(ctx, path)", ErrInvalidConfig))
	}
	if err != nil {
		return nil, err
	}
	if m.sessions, err = lru.New[backends.SessionKey, *sessionState](m.cfg.SessionCache); err != nil {
		return nil, fmt.Errorf("adkmemory: session cache: %w", err)
	}
	if m.runs, err = lru.New[string, *run](maxRuns); err != nil {
		return nil, fmt.Errorf("adkmemory: run cache: %w", err)
	}
	m.raw = m.newRaw()
	m.layers = m.knowledgeLayers()
	if m.telemetry, err = newTelemetry(m); err != nil {
		return nil, err
	}
	if err := m.writers(); err != nil {
		return nil, err
	}
	m.buffer, err = buffer.New(buffer.Config[backends.SessionKey, job]{
		Process:    m.process,
		Workers:    m.cfg.Workers,
		QueueLimit: m.cfg.QueueLimit,
		WaitGroup:  m.deps.WaitGroup,
		Logger:     m.deps.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("adkmemory: buffer: %w", err)
	}
	return m, nil
}

func (d Deps) withDefaults() Deps {
	if d.Counter == nil {
		d.Counter = token.Estimator{}
	}
	if d.Logger == nil {
		d.Logger = slog.Default()
	}
	d.Logger = slog.New(tracedLog{d.Logger.Handler()})
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.NewID == nil {
		d.NewID = uuid.NewString
	}
	return d
}

// resolveModels looks up the models that the configuration names.
func (m *Middleware) resolveModels() error {
	var errs []error
	named := func(field, provider, name string) model.LLM {
		switch {
		case name == "" || provider == "": // Validate reports half a name
			return nil
		case m.deps.Models == nil:
			errs = append(errs, fmt.Errorf("%w: %s is set, but Deps.Models is nil and cannot resolve it", ErrInvalidConfig, field))
			return nil
		}
		llm, err := m.deps.Models.NewModel(context.Background(), provider, name)
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: %s: %w", ErrInvalidConfig, field, err))
		}
		return llm
	}
	if llm := named("model", m.cfg.Provider, m.cfg.Model); llm != nil {
		m.deps.Model = llm
	}
	m.reflectorModel = named("reflectorModel", m.cfg.ReflectorProvider, m.cfg.ReflectorModel)
	return errors.Join(errs...)
}

// writers builds what writes notes: the Observer and the Reflector, and their extractive twins.
func (m *Middleware) writers() error {
	m.extractObserver = observer.NewExtractive(observer.ExtractiveConfig{Counter: m.deps.Counter})
	m.extractReflector = reflector.NewExtractive(reflector.ExtractiveConfig{Counter: m.deps.Counter})
	if m.deps.Observer == nil {
		o, err := observer.New(observer.Config{Model: m.telemetry.traced(m.deps.Model, m.cfg.Provider), Counter: m.deps.Counter, Prompt: m.cfg.ObserverPrompt})
		if err != nil {
			return fmt.Errorf("adkmemory: observer: %w", err)
		}
		m.deps.Observer = o
	}
	if m.deps.Reflector == nil {
		llm := m.telemetry.traced(m.deps.Model, m.cfg.Provider)
		if m.reflectorModel != nil {
			llm = m.telemetry.traced(m.reflectorModel, m.cfg.ReflectorProvider)
		}
		r, err := reflector.New(reflector.Config{Model: llm, Counter: m.deps.Counter, Prompt: m.cfg.ReflectorPrompt})
		if err != nil {
			return fmt.Errorf("adkmemory: reflector: %w", err)
		}
		m.deps.Reflector = r
	}
	if m.cfg.Extractive {
		m.deps.Observer, m.deps.Reflector = m.extractObserver, m.extractReflector
	}
	m.breaker = gobreaker.NewCircuitBreaker[observer.Note](gobreaker.Settings{
		Name:         "adkmemory",
		IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) || errors.Is(err, observer.ErrNoModel) },
		IsSuccessful: func(err error) bool { return err == nil || errors.Is(err, observer.ErrRejected) },
	})
	return nil
}

// Enabled reports whether memory is on.
func (m *Middleware) Enabled() bool { return m.cfg.Enabled }

// Start begins to work off triggers in the background; those from before wait for it. The context gives values, not
// a lifetime: [Middleware.Stop] ends the work. Starting twice, or with memory disabled, does nothing.
func (m *Middleware) Start(ctx context.Context) error {
	if !m.cfg.Enabled {
		return nil
	}
	if err := m.buffer.Start(ctx); err != nil {
		return err
	}
	return m.watch()
}

// Stop takes no new work, completes what was triggered and returns. When ctx ends first, it cancels the rest and returns
// an error that says how many sessions were left; their next turn derives the same work again. Stopping twice, or
// without a Start, is fine. The store stays open.
func (m *Middleware) Stop(ctx context.Context) error {
	if !m.cfg.Enabled {
		return nil
	}
	defer m.unwatch()
	return m.buffer.Stop(ctx)
}

// Flush waits until the session has no work in the background, or ctx ends. Tests and batch jobs use it; a turn never
// needs to.
func (m *Middleware) Flush(ctx context.Context, key backends.SessionKey) error {
	if !m.cfg.Enabled {
		return nil
	}
	return m.buffer.Wait(ctx, key)
}

// SetCompactor sets what replaces observed messages by a summary after an observation, at any time; nil takes it away.
// Without one all messages stay where they are.
func (m *Middleware) SetCompactor(c Compactor) {
	if c == nil {
		m.compactor.Store(nil)
		return
	}
	m.compactor.Store(&c)
}

func (m *Middleware) session(key backends.SessionKey) *sessionState {
	if s, ok := m.sessions.Get(key); ok {
		return s
	}
	s := newSessionState()
	if prev, ok, _ := m.sessions.PeekOrAdd(key, s); ok {
		return prev
	}
	return s
}

// Model wraps an agent's model with memory: this is the whole integration. The wrapped model keeps its name, streaming
// and every capability it has. With memory disabled, a nil model or one that is wrapped already, it returns llm itself.
func (m *Middleware) Model(llm model.LLM) model.LLM {
	if !m.cfg.Enabled || llm == nil {
		return llm
	}
	if w, ok := llm.(interface{ memory() *Middleware }); ok && w.memory() == m {
		return llm
	}
	return wrap(m, llm)
}
