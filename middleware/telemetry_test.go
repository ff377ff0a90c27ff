package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/genai"

	"google.golang.org/adk/v2/model"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/retriever"
)

// noRetriever is a retriever that finds nothing.
type noRetriever struct{}

func (noRetriever) Retrieve(context.Context, retriever.Request) retriever.Result {
	return retriever.Result{}
}
func (noRetriever) Sections(retriever.Result) (knowledge, memory []retriever.Section) {
	return nil, nil
}
func (noRetriever) Layers() []string { return []string{retriever.UserKnowledge} }

// noter is a model that writes acceptable notes and reports what they cost. It fails when told to.
func noter(fail func(n int) error) *scripted {
	return &scripted{name: "noter-1", answer: func(n int, _ *model.LLMRequest) (*model.LLMResponse, error) {
		if fail != nil {
			if err := fail(n); err != nil {
				return nil, err
			}
		}
		r, err := says(fmt.Sprintf("- Note %d: the passenger booked a flight and pays with a SECRETWORD card.", n))
		r.ModelVersion, r.FinishReason = "noter-1-001", genai.FinishReasonStop
		r.UsageMetadata = &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 400, CandidatesTokenCount: 20, ThoughtsTokenCount: 5}
		return r, err
	}}
}

// recorder collects what a run reports.
type recorder struct {
	spans  *tracetest.InMemoryExporter
	reader *sdkmetric.ManualReader
	tracer *sdktrace.TracerProvider
	log    *bytes.Buffer
}

type lockedWriter struct {
	mu sync.Mutex
	w  *bytes.Buffer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Write(p)
}

func (r *recorder) install(c *appConfig) {
	r.spans, r.reader, r.log = tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader(), new(bytes.Buffer)
	r.tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(r.spans))
	c.deps.TracerProvider = r.tracer
	c.deps.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader))
	c.deps.Logger = slog.New(slog.NewJSONHandler(&lockedWriter{w: r.log}, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (r *recorder) collect(t *testing.T) map[string]metricdata.Metrics {
	t.Helper()
	var rm metricdata.ResourceMetrics
	if err := r.reader.Collect(context.Background(), &rm); err != nil {
		t.Fatal(err)
	}
	out := map[string]metricdata.Metrics{}
	for _, s := range rm.ScopeMetrics {
		if s.Scope.Name != "github.com/adkmemory/adkmemory/middleware" || s.Scope.Version == "" {
			t.Errorf("scope %+v", s.Scope)
		}
		for _, m := range s.Metrics {
			out[m.Name] = m
		}
	}
	return out
}

// attributeKeys returns the kind, and the attributes of all points of a metric.
func attributeKeys(m metricdata.Metrics) (kind string, keys map[string]bool) {
	keys = map[string]bool{}
	switch d := m.Data.(type) {
	case metricdata.Sum[int64]:
		kind = "counter"
		for _, p := range d.DataPoints {
			for _, kv := range p.Attributes.ToSlice() {
				keys[string(kv.Key)] = true
			}
		}
	case metricdata.Gauge[int64]:
		kind = "gauge"
	case metricdata.Histogram[int64]:
		kind = "histogram"
		for _, p := range d.DataPoints {
			for _, kv := range p.Attributes.ToSlice() {
				keys[string(kv.Key)] = true
			}
		}
	case metricdata.Histogram[float64]:
		kind = "histogram"
		for _, p := range d.DataPoints {
			for _, kv := range p.Attributes.ToSlice() {
				keys[string(kv.Key)] = true
			}
		}
	}
	return kind, keys
}

// reported runs a conversation in which everything that has a span happens at least once.
func reported(t *testing.T, capture bool) (*recorder, *app) {
	t.Helper()
	r := new(recorder)
	failOnce := func(n int) error {
		if n == 0 {
			return errors.New("the model is away, said SECRETWORD")
		}
		return nil
	}
	notes := noter(failOnce)
	a := newApp(t, talker(), with(r.install), with(func(c *appConfig) {
		c.cfg = middleware.Config{
			Enabled: true, Provider: "Acme", Model: "noter-1", MessageTokenThreshold: 120, ObservationTokenThreshold: 60,
			ReflectionConsolidationThreshold: 2, ObserverAttempts: 1, CaptureContent: capture,
		}
		c.deps.Models = middleware.ModelsFunc(func(context.Context, string, string) (model.LLM, error) { return notes, nil })
		c.deps.Retriever = noRetriever{}
	}))
	a.mem.SetCompactor(func(context.Context, backends.SessionKey, int, string, string) (int, error) { return 1, nil })
	for i := range 40 {
		a.say(fact(i) + " SECRETWORD")
		a.settle()
	}
	return r, a
}

// documented reads the tables of docs/telemetry.md whose first cell is of the given form: name to the other cells.
func documented(t *testing.T, heading string) map[string][]string {
	t.Helper()
	raw, err := os.ReadFile("../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(raw), "\n| "+heading+" |")
	if !ok {
		t.Fatalf("docs/telemetry.md has no table of %ss", heading)
	}
	rows := map[string][]string{}
	for i, line := range strings.Split(rest, "\n") {
		if i < 2 {
			continue
		}
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for j := range cells {
			cells[j] = strings.TrimSpace(cells[j])
		}
		rows[strings.Trim(cells[0], "`")] = cells[1:]
	}
	return rows
}

var quoted = regexp.MustCompile("`([^`]+)`")

func names(cell string) []string {
	var out []string
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		out = append(out, m[1])
	}
	slices.Sort(out)
	return out
}

func TestTelemetry(t *testing.T) {
	t.Parallel()
	r, _ := reported(t, true)
	spans := r.spans.GetSpans()
	metrics := r.collect(t)

	t.Run("OPS-1 every span and attribute is documented, and every documented one is emitted", func(t *testing.T) {
		t.Parallel()
		want := documented(t, "span")
		got := map[string]map[string]bool{}
		attributes := documented(t, "attribute")
		for _, s := range spans {
			name := s.Name
			if strings.HasPrefix(name, "generate_content ") {
				name = "generate_content *"
			}
			if got[name] == nil {
				got[name] = map[string]bool{}
			}
			for _, kv := range s.Attributes {
				got[name][string(kv.Key)] = true
				if attributes[string(kv.Key)] == nil {
					t.Errorf("attribute %s is not documented", kv.Key)
				}
			}
		}
		for name, row := range want {
			if keys := slices.Sorted(maps.Keys(got[name])); !slices.Equal(keys, names(row[1])) {
				t.Errorf("span %s has\n%v, documented are\n%v", name, keys, names(row[1]))
			}
		}
		for name := range got {
			if want[name] == nil {
				t.Errorf("span %s is not documented", name)
			}
		}
	})
	t.Run("OPS-4 every metric is documented, and every documented one is emitted", func(t *testing.T) {
		t.Parallel()
		want := documented(t, "metric")
		attributes := documented(t, "attribute")
		for name, m := range metrics {
			kind, keys := attributeKeys(m)
			row := want[name]
			if row == nil {
				t.Errorf("metric %s is not documented", name)
				continue
			}
			if row[0] != kind || strings.Trim(row[1], "`") != m.Unit || !slices.Equal(names(row[2]), slices.Sorted(maps.Keys(keys))) {
				t.Errorf("%s is a %s in %s of %v; documented: %v", name, kind, m.Unit, keys, row)
			}
			for key := range keys {
				if attributes[key] == nil {
					t.Errorf("attribute %s is not documented", key)
				}
			}
		}
		for name := range want {
			if _, ok := metrics[name]; !ok {
				t.Errorf("metric %s is never emitted", name)
			}
		}
	})
	t.Run("OPS-1 the background is linked to the turn, and a model call is a client span within an observe", func(t *testing.T) {
		t.Parallel()
		byID := map[trace.SpanID]tracetest.SpanStub{}
		for _, s := range spans {
			byID[s.SpanContext.SpanID()] = s
		}
		for _, s := range spans {
			switch {
			case s.Name == "adkmemory.process" || s.Name == "adkmemory.observe" || s.Name == "adkmemory.reflect" || s.Name == "adkmemory.compact":
				if len(s.Links) != 1 || byID[s.Links[0].SpanContext.SpanID()].Name != "adkmemory.assemble" || s.Links[0].SpanContext.TraceID() == s.SpanContext.TraceID() {
					t.Errorf("%s is linked to %v", s.Name, s.Links)
				}
			case strings.HasPrefix(s.Name, "generate_content"):
				parent := byID[s.Parent.SpanID()].Name
				if s.Name != "generate_content noter-1" || s.SpanKind != trace.SpanKindClient || parent != "adkmemory.observe" && parent != "adkmemory.reflect" {
					t.Errorf("%s (%v) is a child of %q", s.Name, s.SpanKind, parent)
				}
			}
		}
	})
	t.Run("OPS-4 numbers are right", func(t *testing.T) {
		t.Parallel()
		lag := metrics["adkmemory.lag"].Data.(metricdata.Histogram[float64]).DataPoints[0]
		var notes int64
		for _, p := range metrics["adkmemory.notes"].Data.(metricdata.Sum[int64]).DataPoints {
			if v, _ := p.Attributes.Value("adkmemory.note.kind"); v.AsString() == "observation" {
				notes = p.Value
			}
		}
		if notes == 0 || lag.Count != uint64(notes) {
			t.Errorf("%d observations, %d lags", notes, lag.Count)
		}
		for _, p := range metrics["adkmemory.failures"].Data.(metricdata.Sum[int64]).DataPoints {
			v, _ := p.Attributes.Value("adkmemory.stage")
			if want := map[string]int64{"observe": 1}[v.AsString()]; p.Value != want {
				t.Errorf("%d failures of %s, want %d", p.Value, v.AsString(), want)
			}
		}
		stages := map[string]uint64{}
		for _, p := range metrics["adkmemory.stage.duration"].Data.(metricdata.Histogram[float64]).DataPoints {
			v, _ := p.Attributes.Value("adkmemory.stage")
			stages[v.AsString()] = p.Count
		}
		if stages["assemble"] != 40 || stages["load"] < 40 || stages["retrieve"] != 40 || stages["observe"] != uint64(notes)+1 || stages["commit"] <= uint64(notes) {
			t.Errorf("stages %v with %d observations", stages, notes)
		}
	})
	t.Run("OPS-4 log records lead to their trace and session", func(t *testing.T) {
		t.Parallel()
		found := false
		for line := range strings.Lines(r.log.String()) {
			var record map[string]any
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Fatal(err)
			}
			if record["level"] != "ERROR" {
				continue
			}
			found = true
			if record["session"] == nil || record["trace_id"] == nil || record["span_id"] == nil {
				t.Errorf("record %v", record)
			}
		}
		if !found {
			t.Error("the failure was not logged")
		}
	})
}

func TestTelemetryWithoutContent(t *testing.T) {
	t.Parallel()
	t.Run("OPS-1 no span holds content unless asked for", func(t *testing.T) {
		t.Parallel()
		r, _ := reported(t, false)
		for _, s := range r.spans.GetSpans() {
			if text := fmt.Sprint(s.Attributes, s.Events, s.Status); strings.Contains(text, "SECRETWORD") || strings.Contains(text, "Passenger") {
				t.Errorf("%s holds content: %s", s.Name, text)
			}
		}
	})
}
