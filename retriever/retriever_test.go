package retriever_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/retriever"
)

// fake is a layer that does what its func says and counts its calls.
type fake struct {
	name  string
	calls atomic.Int32
	do    func(ctx context.Context, q retriever.Query) ([]retriever.Item, error)
}

func (f *fake) Name() string { return f.name }

func (f *fake) Retrieve(ctx context.Context, q retriever.Query) ([]retriever.Item, error) {
	f.calls.Add(1)
	if f.do == nil {
		return []retriever.Item{{Text: f.name + " item"}}, nil
	}
	return f.do(ctx, q)
}

func items(n int) func(context.Context, retriever.Query) ([]retriever.Item, error) {
	return func(context.Context, retriever.Query) ([]retriever.Item, error) {
		var out []retriever.Item
		for i := range n {
			out = append(out, retriever.Item{Text: fmt.Sprint("item ", i), Score: float64(i)})
		}
		return out, nil
	}
}

func allLayers() []*fake {
	var out []*fake
	for _, name := range []string{
		retriever.RuntimeContext, retriever.ToolRegistry, retriever.UserKnowledge, retriever.AgentLearnings,
		retriever.SkillPatterns, retriever.ExternalKnowledge, retriever.Observations, retriever.Reflections,
	} {
		out = append(out, &fake{name: name})
	}
	return out
}

func newRetriever(t *testing.T, cfg retriever.Config, fakes ...*fake) *retriever.Retriever {
	t.Helper()
	var layers []retriever.Layer
	for _, f := range fakes {
		layers = append(layers, f)
	}
	r, err := retriever.New(cfg, layers...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func found(res retriever.Result) []string {
	var names []string
	for _, l := range res.Layers {
		names = append(names, l.Layer)
	}
	return names
}

func TestRetrieve(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	t.Run("RET-2 without a list the four default layers are asked", func(t *testing.T) {
		t.Parallel()
		res := newRetriever(t, retriever.Config{}, allLayers()...).Retrieve(ctx, retriever.Request{Query: "deployment"})
		if got := found(res); !slices.Equal(got, retriever.DefaultLayers()) || len(got) != 4 {
			t.Errorf("asked %q", got)
		}
	})
	t.Run("RET-1 RET-2 with a list only those are asked, all eight if named", func(t *testing.T) {
		t.Parallel()
		all := allLayers()
		r := newRetriever(t, retriever.Config{}, all...)
		res := r.Retrieve(ctx, retriever.Request{Query: "deployment", Layers: []string{retriever.ToolRegistry, retriever.ToolRegistry, "none"}})
		if got := found(res); !slices.Equal(got, []string{retriever.ToolRegistry}) || all[1].calls.Load() != 1 {
			t.Errorf("asked %q, %d times", got, all[1].calls.Load())
		}
		var names []string
		for _, f := range all {
			names = append(names, f.name)
		}
		if got := found(r.Retrieve(ctx, retriever.Request{Query: "deployment", Layers: names})); !slices.Equal(got, names) {
			t.Errorf("asked %q", got)
		}
	})
	t.Run("RET-3 at most maxPerLayer items, the best ones, best first", func(t *testing.T) {
		t.Parallel()
		r := newRetriever(t, retriever.Config{}, &fake{name: "x", do: items(9)})
		got := r.Retrieve(ctx, retriever.Request{Query: "deployment", Layers: []string{"x"}}).Items("x")
		if len(got) != 5 || got[0].Text != "item 8" || got[4].Text != "item 4" {
			t.Errorf("got %+v", got)
		}
		got = r.Retrieve(ctx, retriever.Request{Query: "deployment", Layers: []string{"x"}, MaxPerLayer: 2}).Items("x")
		if len(got) != 2 || got[0].Layer != "x" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("RET-4 a query without keywords asks no layer", func(t *testing.T) {
		t.Parallel()
		f := &fake{name: retriever.UserKnowledge}
		r := newRetriever(t, retriever.Config{}, f)
		for _, query := range []string{"", "what is it?", " \t\n", "!!"} {
			if res := r.Retrieve(ctx, retriever.Request{Query: query}); !res.Empty() || f.calls.Load() > 0 {
				t.Errorf("%q: %+v after %d calls", query, res, f.calls.Load())
			}
		}
	})
	t.Run("RET-5 a layer that fails or panics is logged at warn and the others go on", func(t *testing.T) {
		t.Parallel()
		var log bytes.Buffer
		r := newRetriever(t, retriever.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))},
			&fake{name: retriever.UserKnowledge, do: func(context.Context, retriever.Query) ([]retriever.Item, error) {
				return nil, errors.New("down")
			}},
			&fake{name: retriever.SkillPatterns, do: func(context.Context, retriever.Query) ([]retriever.Item, error) { panic("bug") }},
			&fake{name: retriever.AgentLearnings})
		res := r.Retrieve(ctx, retriever.Request{Query: "deployment"})
		if !slices.Equal(found(res), []string{retriever.AgentLearnings}) ||
			!slices.Equal(res.Failed, []string{retriever.UserKnowledge, retriever.SkillPatterns}) {
			t.Errorf("got %+v", res)
		}
		for _, want := range []string{"level=WARN", "layer=user-knowledge", "down", "panic: bug"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log lacks %q: %s", want, log.String())
			}
		}
	})
	t.Run("RET-8 what two layers know is shown once", func(t *testing.T) {
		t.Parallel()
		same := func(context.Context, retriever.Query) ([]retriever.Item, error) {
			return []retriever.Item{{Text: "the Same  text"}, {Text: "The same text"}}, nil
		}
		r := newRetriever(t, retriever.Config{}, &fake{name: retriever.UserKnowledge, do: same}, &fake{name: retriever.AgentLearnings, do: same})
		res := r.Retrieve(ctx, retriever.Request{Query: "deployment"})
		if len(res.Layers) != 1 || len(res.Layers[0].Items) != 1 {
			t.Errorf("got %+v", res)
		}
	})
	t.Run("RET-8 a layer gets the key and cannot change what another gets", func(t *testing.T) {
		t.Parallel()
		key := backends.SessionKey{App: "a", User: "u", Session: "s"}
		check := func(_ context.Context, q retriever.Query) ([]retriever.Item, error) {
			if q.Key != key || len(q.Keywords) != 1 || q.Keywords[0] != "deployment" {
				return nil, fmt.Errorf("query %+v", q)
			}
			q.Keywords[0] = "changed"
			return nil, nil
		}
		r := newRetriever(t, retriever.Config{}, &fake{name: retriever.UserKnowledge, do: check}, &fake{name: retriever.AgentLearnings, do: check})
		if res := r.Retrieve(ctx, retriever.Request{Query: "deployment", Key: key}); len(res.Failed) > 0 {
			t.Errorf("failed: %q", res.Failed)
		}
	})
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	t.Run("RET-5 a layer that hangs costs its deadline and nothing else", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			hang := &fake{name: retriever.UserKnowledge, do: func(context.Context, retriever.Query) ([]retriever.Item, error) {
				<-release // deaf to its context
				return nil, nil
			}}
			r := newRetriever(t, retriever.Config{LayerTimeout: time.Second, MaxInFlight: 2}, hang, &fake{name: retriever.AgentLearnings})
			for i := range 3 {
				begin := time.Now()
				res := r.Retrieve(t.Context(), retriever.Request{Query: "deployment"})
				want := time.Second
				if i == 2 {
					want = 0 // two calls hang already: a third is not even begun
				}
				if took := time.Since(begin); took != want {
					t.Errorf("call %d took %v, want %v", i, took, want)
				}
				if !slices.Equal(found(res), []string{retriever.AgentLearnings}) || !slices.Equal(res.Failed, []string{retriever.UserKnowledge}) {
					t.Errorf("call %d: %+v", i, res)
				}
			}
			if n := hang.calls.Load(); n != 2 {
				t.Errorf("%d calls were begun, want 2", n)
			}
			close(release)
		})
	})
	t.Run("RET-5 layers run in parallel", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			slow := func(ctx context.Context, _ retriever.Query) ([]retriever.Item, error) {
				select {
				case <-time.After(200 * time.Millisecond):
					return []retriever.Item{{Text: "late"}}, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			r := newRetriever(t, retriever.Config{}, &fake{name: retriever.UserKnowledge, do: slow}, &fake{name: retriever.AgentLearnings, do: slow})
			begin := time.Now()
			res := r.Retrieve(t.Context(), retriever.Request{Query: "deployment"})
			if took := time.Since(begin); took != 200*time.Millisecond || len(res.Failed) > 0 {
				t.Errorf("took %v, %+v", took, res)
			}
		})
	})
}

func TestNew(t *testing.T) {
	t.Parallel()
	t.Run("RET-1 faults of the configuration are reported all at once", func(t *testing.T) {
		t.Parallel()
		_, err := retriever.New(retriever.Config{MaxPerLayer: -1, SectionTokens: -1}, &fake{name: "x"}, &fake{name: "x"}, &fake{}, nil)
		if !errors.Is(err, backends.ErrInvalid) {
			t.Fatalf("error %v", err)
		}
		for _, want := range []string{"MaxPerLayer", "SectionTokens", `"x"`, "no name", "nil"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not mentioned in %q", want, err)
			}
		}
	})
}
