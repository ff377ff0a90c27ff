package middleware

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// The kinds of notes.
const (
	kindObservation = "observation"
	kindReflection  = "reflection"
)

// metrics are the instruments, each with its attributes prepared: recording into one allocates nothing without an SDK.
type metrics struct {
	meter      metric.Meter
	stages     [stageCount]histogram // seconds
	lag        histogram             // seconds
	tokens     map[string]histogram  // of notes, by kind
	sources    map[string]histogram  // tokens of what notes cover, by kind
	window     histogram             // tokens sent as messages
	memory     histogram             // tokens sent as memory
	operation  metric.Float64Histogram
	usage      metric.Int64Histogram
	queueDepth metric.Int64ObservableGauge
	breaker    metric.Int64ObservableGauge
}

// count is a number that both [Stats] and a metric show.
type count struct {
	atomic.Int64
	counter metric.Int64Counter
	options []metric.AddOption
}

// Add adds n to the number and to its metric, if it has one.
func (c *count) Add(n int64) {
	if n == 0 {
		return
	}
	c.Int64.Add(n)
	if c.counter != nil {
		c.counter.Add(context.Background(), n, c.options...)
	}
}

// histogram is an instrument with its attributes.
type histogram struct {
	floats  metric.Float64Histogram
	ints    metric.Int64Histogram
	options []metric.RecordOption
}

func (h histogram) record(v float64) { h.floats.Record(context.Background(), v, h.options...) }

func (h histogram) recordInt(v int) { h.ints.Record(context.Background(), int64(v), h.options...) }

func (m *metrics) note(kind string, tokens, sourceTokens int) {
	m.tokens[kind].recordInt(tokens)
	m.sources[kind].recordInt(sourceTokens)
}

// instruments makes instruments and keeps the first error.
type instruments struct {
	meter metric.Meter
	errs  []error
}

func (i *instruments) counter(name, unit, description string) metric.Int64Counter {
	c, err := i.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
	i.errs = append(i.errs, err)
	return c
}

func (i *instruments) seconds(name, description string) metric.Float64Histogram {
	h, err := i.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 2.5, 5, 10, 30, 60, 120))
	i.errs = append(i.errs, err)
	return h
}

func (i *instruments) tokens(name, description string) metric.Int64Histogram {
	h, err := i.meter.Int64Histogram(name, metric.WithUnit("{token}"), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072))
	i.errs = append(i.errs, err)
	return h
}

func (i *instruments) gauge(name, unit, description string) metric.Int64ObservableGauge {
	g, err := i.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
	i.errs = append(i.errs, err)
	return g
}

func newMetrics(mp metric.MeterProvider, stats *counters) (*metrics, error) {
	i := &instruments{meter: mp.Meter(scope, metric.WithInstrumentationVersion(version()))}
	m := &metrics{
		meter:      i.meter,
		lag:        histogram{floats: i.seconds("adkmemory.lag", "Time from the trigger of a note to its commit.")},
		window:     histogram{ints: i.tokens("adkmemory.request.window.tokens", "Tokens of the messages sent in one model call.")},
		memory:     histogram{ints: i.tokens("adkmemory.request.memory.tokens", "Tokens of the memory section sent in one model call.")},
		operation:  i.seconds("gen_ai.client.operation.duration", "Duration of a model call that writes a note."),
		usage:      i.tokens("gen_ai.client.token.usage", "Tokens that a model reported for writing a note."),
		queueDepth: i.gauge("adkmemory.queue.depth", "{session}", "Sessions that wait for the background."),
		breaker:    i.gauge("adkmemory.breaker.state", "1", "Circuit breaker before the model: 0 closed, 1 half open, 2 open."),
		tokens:     make(map[string]histogram),
		sources:    make(map[string]histogram),
	}
	duration := i.seconds("adkmemory.stage.duration", "Duration of one stage of the work.")
	for s := range stageCount {
		m.stages[s] = histogram{floats: duration, options: recording(attribute.String(attrStage, stageNames[s]))}
	}
	after := i.tokens("adkmemory.note.tokens", "Tokens of a stored note.")
	before := i.tokens("adkmemory.note.source.tokens", "Tokens of what a stored note covers.")
	for _, kind := range []string{kindObservation, kindReflection} {
		m.tokens[kind] = histogram{ints: after, options: recording(attribute.String(attrNoteKind, kind))}
		m.sources[kind] = histogram{ints: before, options: recording(attribute.String(attrNoteKind, kind))}
	}
	stats.bind(i)
	if err := errors.Join(i.errs...); err != nil {
		return nil, fmt.Errorf("adkmemory: metrics: %w", err)
	}
	return m, nil
}

// bind gives every number its metric.
func (c *counters) bind(i *instruments) {
	to := func(n *count, counter metric.Int64Counter, attrs ...attribute.KeyValue) {
		n.counter = counter
		if len(attrs) > 0 {
			n.options = []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(attrs...))}
		}
		if counter != nil { // it is there from the start, so that a rate over the first event is right
			counter.Add(context.Background(), 0, n.options...)
		}
	}
	notes := i.counter("adkmemory.notes", "{note}", "Notes written.")
	to(&c.observations, notes, attribute.String(attrNoteKind, kindObservation))
	to(&c.reflections, notes, attribute.String(attrNoteKind, kindReflection))
	to(&c.fallbacks, i.counter("adkmemory.fallbacks", "{note}", "Notes extracted because the model failed."))
	to(&c.compactions, i.counter("adkmemory.compactions", "{summary}", "Summaries put in place of messages."))
	to(&c.conflicts, i.counter("adkmemory.conflicts", "{note}", "Notes given up because the session had changed."))
	to(&c.waits, i.counter("adkmemory.waits", "{turn}", "Turns that waited for the background at the hard limit."))
	failures := i.counter("adkmemory.failures", "{failure}", "Work given up for an error.")
	to(&c.loadFailures, failures, attribute.String(attrStage, stageLoad.String()))
	to(&c.observeFailures, failures, attribute.String(attrStage, stageObserve.String()))
	to(&c.reflectFailures, failures, attribute.String(attrStage, stageReflect.String()))
	to(&c.compactFailures, failures, attribute.String(attrStage, stageCompact.String()))
	to(&c.panics, failures, attribute.String(attrStage, "panic"))
	drops := i.counter("adkmemory.drops", "{item}", "What a limit kept out.")
	to(&c.droppedTriggers, drops, attribute.String(attrDropReason, "trigger"))
	to(&c.droppedHardLimit, drops, attribute.String(attrDropReason, "hard_limit"))
	to(&c.notesLeftOut, drops, attribute.String(attrDropReason, "note_left_out"))
	to(&c.rawLeftOut, drops, attribute.String(attrDropReason, "raw_left_out"))
}

func recording(attrs ...attribute.KeyValue) []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attrs...))}
}

// watch shows what is current in the gauges, until unwatch.
func (m *Middleware) watch() (err error) {
	m.gaugesMu.Lock()
	defer m.gaugesMu.Unlock()
	if m.gauges != nil {
		return nil
	}
	t := m.telemetry.metrics
	m.gauges, err = t.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(t.queueDepth, int64(m.buffer.Depth()))
		o.ObserveInt64(t.breaker, int64(m.breaker.State()))
		return nil
	}, t.queueDepth, t.breaker)
	if err != nil {
		return fmt.Errorf("adkmemory: metrics: %w", err)
	}
	return nil
}

func (m *Middleware) unwatch() {
	m.gaugesMu.Lock()
	defer m.gaugesMu.Unlock()
	if m.gauges != nil {
		_ = m.gauges.Unregister()
		m.gauges = nil
	}
}
