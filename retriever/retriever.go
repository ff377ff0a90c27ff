package retriever

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/adkmemory/adkmemory/backends"
)

// Defaults of [Config].
const (
	DefaultMaxPerLayer   = 5
	DefaultLayerTimeout  = 300 * time.Millisecond
	DefaultSectionTokens = 400
	DefaultMaxInFlight   = 64
)

// Config configures a [Retriever]. The zero value takes every default.
type Config struct {
	// MaxPerLayer bounds the items of a layer. Default [DefaultMaxPerLayer].
	MaxPerLayer int

	// LayerTimeout is the deadline of one layer. Default [DefaultLayerTimeout].
	LayerTimeout time.Duration

	// MaxInFlight bounds the calls of one layer that run at a time, so that a layer that hangs does not pile up
	// goroutines: past it the layer counts as failed. Default [DefaultMaxInFlight].
	MaxInFlight int

	// SectionTokens is the budget of one section of the prompt. What a section leaves is handed on to those after it.
	// Default [DefaultSectionTokens].
	SectionTokens int

	// SectionBudgets overrides SectionTokens for layers by name.
	SectionBudgets map[string]int

	// Counter estimates tokens. Default: four characters of an alphabet a token, two of Chinese, Japanese or Korean.
	Counter Counter

	// Logger gets a warning for every layer that fails. Default [slog.Default].
	Logger *slog.Logger
}

// Counter estimates the tokens of a text.
type Counter interface{ Count(text string) int }

// withDefaults returns a copy with the zero fields filled in, or every fault of the others.
func (c Config) withDefaults() (Config, error) {
	var errs []error
	positive := func(name string, value int64) {
		if value < 0 {
			errs = append(errs, fmt.Errorf("%w: %s is negative", backends.ErrInvalid, name))
		}
	}
	positive("MaxPerLayer", int64(c.MaxPerLayer))
	positive("LayerTimeout", int64(c.LayerTimeout))
	positive("MaxInFlight", int64(c.MaxInFlight))
	positive("SectionTokens", int64(c.SectionTokens))
	for name, tokens := range c.SectionBudgets {
		positive("SectionBudgets of "+name, int64(tokens))
	}
	c.MaxPerLayer = cmp.Or(c.MaxPerLayer, DefaultMaxPerLayer)
	c.LayerTimeout = cmp.Or(c.LayerTimeout, DefaultLayerTimeout)
	c.MaxInFlight = cmp.Or(c.MaxInFlight, DefaultMaxInFlight)
	c.SectionTokens = cmp.Or(c.SectionTokens, DefaultSectionTokens)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Counter == nil {
		c.Counter = estimator{}
	}
	return c, errors.Join(errs...)
}

// Retriever asks layers. It is safe for concurrent use.
type Retriever struct {
	cfg    Config
	layers map[string]*slot
}

// slot is a layer with the calls it may still take.
type slot struct {
	Layer
	free chan struct{}
}

// New returns a retriever over layers of different names. The error wraps [backends.ErrInvalid].
func New(cfg Config, layers ...Layer) (*Retriever, error) {
	cfg, err := cfg.withDefaults()
	errs := []error{err}
	r := &Retriever{cfg: cfg, layers: make(map[string]*slot, len(layers))}
	for _, l := range layers {
		switch {
		case l == nil:
			errs = append(errs, fmt.Errorf("%w: a layer is nil", backends.ErrInvalid))
		case strings.TrimSpace(l.Name()) == "":
			errs = append(errs, fmt.Errorf("%w: a layer has no name", backends.ErrInvalid))
		case r.layers[l.Name()] != nil:
			errs = append(errs, fmt.Errorf("%w: two layers are named %q", backends.ErrInvalid, l.Name()))
		default:
			r.layers[l.Name()] = &slot{Layer: l, free: make(chan struct{}, max(1, cfg.MaxInFlight))}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return r, nil
}

// Layers returns the names of the retriever's layers, in alphabetical order.
func (r *Retriever) Layers() []string { return slices.Sorted(maps.Keys(r.layers)) }

// Request asks for context.
type Request struct {
	Query       string              // what the user said
	Key         backends.SessionKey // whose; zero when there is no session key
	Layers      []string            // only these; empty for [DefaultLayers]. One that the retriever does not have finds nothing
	MaxPerLayer int                 // default: the configuration's
}

// Result is what the layers returned.
type Result struct {
	Layers []LayerItems // those that found something, in the order of the request
	Failed []string     // names of those that failed, in the order of the request
}

// LayerItems are the items of one layer, best first.
type LayerItems struct {
	Layer string
	Items []Item
}

// Items returns the items of a layer, best first.
func (r Result) Items(layer string) []Item {
	for _, l := range r.Layers {
		if l.Layer == layer {
			return l.Items
		}
	}
	return nil
}

// Empty reports whether nothing was found.
func (r Result) Empty() bool { return len(r.Layers) == 0 }

// Retrieve asks the layers in parallel and returns what they found in time. A query without keywords asks none.
func (r *Retriever) Retrieve(ctx context.Context, req Request) Result {
	keywords := Keywords(req.Query)
	if len(keywords) == 0 {
		return Result{}
	}
	names := req.Layers
	if len(names) == 0 {
		names = DefaultLayers()
	}
	limit := req.MaxPerLayer
	if limit <= 0 {
		limit = r.cfg.MaxPerLayer
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.LayerTimeout)
	defer cancel()
	type call struct {
		name string
		done <-chan outcome
	}
	var calls []call
	asked := map[string]bool{}
	for _, name := range names {
		if l := r.layers[name]; l != nil && !asked[name] {
			asked[name] = true
			q := Query{Text: req.Query, Keywords: slices.Clone(keywords), Key: req.Key, Limit: limit}
			calls = append(calls, call{name, l.start(ctx, q)})
		}
	}
	var res Result
	seen := map[string]bool{}
	for _, c := range calls {
		var o outcome
		select {
		case o = <-c.done:
		default:
			select {
			case o = <-c.done:
			case <-ctx.Done():
				o.err = context.Cause(ctx)
			}
		}
		if o.err != nil {
			res.Failed = append(res.Failed, c.name)
			r.cfg.Logger.WarnContext(ctx, "retrieval layer failed", "layer", c.name, "error", o.err)
			continue
		}
		if items := rank(c.name, o.items, limit, seen); len(items) > 0 {
			res.Layers = append(res.Layers, LayerItems{Layer: c.name, Items: items})
		}
	}
	return res
}

type outcome struct {
	items []Item
	err   error
}

var errBusy = errors.New("too many calls of this layer are still running")

// start asks a layer in a goroutine of its own, which ends when the layer returns.
func (s *slot) start(ctx context.Context, q Query) <-chan outcome {
	done := make(chan outcome, 1)
	select {
	case s.free <- struct{}{}:
	default:
		done <- outcome{err: errBusy}
		return done
	}
	go func() {
		var o outcome
		defer func() {
			if p := recover(); p != nil {
				o = outcome{err: fmt.Errorf("panic: %v", p)}
			}
			<-s.free
			done <- o
		}()
		o.items, o.err = s.Retrieve(ctx, q)
	}()
	return done
}

// rank orders a layer's items and cuts them to limit. A text that an earlier layer returned too is left out.
func rank(layer string, items []Item, limit int, seen map[string]bool) []Item {
	items = slices.Clone(items)
	slices.SortStableFunc(items, func(a, b Item) int { return cmp.Compare(b.Score, a.Score) })
	var out []Item
	for _, item := range items {
		same := strings.Join(strings.Fields(strings.ToLower(item.Title+" "+item.Text)), " ")
		if seen[same] || same == "" || len(out) == limit {
			continue
		}
		seen[same] = true
		item.Layer = layer
		out = append(out, item)
	}
	return out
}
