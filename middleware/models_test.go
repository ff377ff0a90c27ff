package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/adk/v2/model"

	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/middleware"
)

func TestModels(t *testing.T) {
	t.Parallel()
	writer := func(name string) *scripted {
		n := noter(nil)
		n.name = name
		return n
	}
	byName := middleware.ModelsFunc(func(_ context.Context, provider, name string) (model.LLM, error) {
		return writer(provider + "/" + name), nil
	})
	for _, tc := range []struct {
		name                  string
		set                   func(*appConfig)
		observed, reflectedBy string
	}{
		{"provider and model come first", func(c *appConfig) {
			c.cfg.Provider, c.cfg.Model, c.deps.Models, c.deps.Model = "acme", "small", byName, writer("deps")
		}, "acme/small", "acme/small"},
		{"Deps.Model is next", func(c *appConfig) { c.deps.Model = writer("deps") }, "deps", "deps"},
		{"then the model of the call", func(*appConfig) {}, "talker", "talker"},
		{"the Reflector may have its own", func(c *appConfig) {
			c.deps.Model, c.deps.Models = writer("deps"), byName
			c.cfg.ReflectorProvider, c.cfg.ReflectorModel = "acme", "large"
		}, "deps", "acme/large"},
	} {
		t.Run("OBS-3 "+tc.name, func(t *testing.T) {
			t.Parallel()
			agent := talker()
			agent.answer = func(n int, _ *model.LLMRequest) (*model.LLMResponse, error) {
				return says(fmt.Sprintf("- Note %d: noted.", n))
			}
			a := newApp(t, agent, with(func(c *appConfig) {
				c.cfg = middleware.Config{Enabled: true, MessageTokenThreshold: 120, ObservationTokenThreshold: 30}
				tc.set(c)
			}))
			reflected := false
			for i := 0; i < 40 && !reflected; i++ {
				a.say(fact(i))
				a.settle()
				snap := a.snapshot()
				for _, o := range snap.Observations {
					if o.Writer != tc.observed {
						t.Fatalf("an observation by %q, want %q", o.Writer, tc.observed)
					}
				}
				for _, r := range snap.Reflections {
					reflected = true
					if r.Writer != tc.reflectedBy {
						t.Fatalf("a reflection by %q, want %q", r.Writer, tc.reflectedBy)
					}
				}
			}
			if !reflected {
				t.Error("nothing was condensed")
			}
			for _, req := range agent.requests {
				if s := systemOf(req); strings.Contains(s, "Conversation Memory") && !strings.Contains(s, "travel agent") {
					t.Fatal("a note was written through the middleware")
				}
			}
		})
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	t.Run("CFG-2 without configuration memory is off and the agent's model is itself", func(t *testing.T) {
		t.Parallel()
		for _, cfg := range []middleware.Config{{}, {Enabled: false, MessageTokenThreshold: -1}} {
			m, err := middleware.New(cfg, middleware.Deps{})
			if err != nil {
				t.Fatal(err)
			}
			llm := model.LLM(talker())
			if m.Enabled() || m.Model(llm) != llm || m.Start(t.Context()) != nil || m.Stop(t.Context()) != nil || m.Stats() != (middleware.Stats{}) {
				t.Error("memory does something while it is off")
			}
		}
	})
	t.Run("CFG-3 CFG-4 defaults", func(t *testing.T) {
		t.Parallel()
		c := middleware.Config{Enabled: true}.WithDefaults()
		got := []int{c.MessageTokenThreshold, c.ObservationTokenThreshold, c.MaxMessageTokenBudget, c.MaxReflectionsInContext,
			c.MaxObservationsInContext, c.MemoryTokenBudget, c.MaxObservationBatchTokens, c.HardMessageTokenLimit}
		if fmt.Sprint(got) != "[1000 2000 8000 5 20 4000 16000 32000]" {
			t.Errorf("%v", got)
		}
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
	})
	t.Run("CFG-5 all faults at once, by name", func(t *testing.T) {
		t.Parallel()
		_, err := middleware.New(middleware.Config{
			Enabled: true, Provider: "acme", ReflectorModel: "m", MessageTokenThreshold: -1, ObservationTokenThreshold: -1, MaxMessageTokenBudget: -1,
			HardMessageTokenLimit: -5, MaxWait: -1, MemoryTokenBudget: -1, MaxReflectionsInContext: -1, MaxObservationsInContext: -1,
			ObservationOrder: "x", Layout: "x", RawObservations: "x", RawObservationBuffer: -1, Workers: -1, QueueLimit: -1, SessionCache: -1,
			LoadTimeout: -1, ObserverTimeout: -1, ObserverAttempts: -1, MaxObservationBatchTokens: -2,
			ReflectionConsolidationThreshold: 1, AppNames: []string{""},
		}, middleware.Deps{})
		if !errors.Is(err, middleware.ErrInvalidConfig) {
			t.Fatal(err)
		}
		for _, field := range []string{
			"provider and model", "reflectorProvider and reflectorModel", "messageTokenThreshold is", "observationTokenThreshold is", "maxMessageTokenBudget is",
			"hardMessageTokenLimit is", "maxWait is", "memoryTokenBudget is", "maxReflectionsInContext is", "maxObservationsInContext is",
			"observationOrder is", "layout is", "rawObservations is", "rawObservationBuffer is", "workers is", "queueLimit is", "sessionCache is",
			"loadTimeout is", "observerTimeout is", "observerAttempts is", "maxObservationBatchTokens is",
			"reflectionConsolidationThreshold is", "appNames holds", "Deps.Store is nil",
		} {
			if !strings.Contains(err.Error(), ": "+field) {
				t.Errorf("%q is not reported", field)
			}
		}
	})
	t.Run("CFG-5 a model that cannot be resolved is a fault beside the others", func(t *testing.T) {
		t.Parallel()
		_, err := middleware.New(middleware.Config{Enabled: true, Provider: "p", Model: "m", Workers: -1}, middleware.Deps{Store: inmemory.New()})
		if err == nil || !strings.Contains(err.Error(), "model is set, but Deps.Models is nil") || !strings.Contains(err.Error(), "workers is -1") {
			t.Error(err)
		}
	})
}
