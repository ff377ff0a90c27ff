package gormtrace_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/gormstore/gormtrace"
	"github.com/adkmemory/adkmemory/backends/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestUse(t *testing.T) {
	t.Parallel()
	t.Run("OPS-1 statements are spans within the caller's, with their text and without their values", func(t *testing.T) {
		t.Parallel()
		store, err := sqlite.Open(t.Context(), t.TempDir()+"/memory.db")
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		spans := tracetest.NewInMemoryExporter()
		tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
		for range 2 { // the second time changes nothing
			if err := gormtrace.Use(tp, store.DB(), store.Reader()); err != nil {
				t.Fatal(err)
			}
		}
		ctx, parent := tp.Tracer("test").Start(t.Context(), "commit")
		key := backends.SessionKey{App: "app", User: "user", Session: "session"}
		c := backends.Commit{To: backends.Cursor{MessageID: "m"}, Observation: backends.Observation{Note: backends.Note{ID: "o", Text: "SECRETWORD", Writer: "w"}}}
		if _, err := store.Commit(ctx, key, c); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Load(ctx, key, backends.Stamp{}); err != nil {
			t.Fatal(err)
		}
		parent.End()
		operations := map[string]int{}
		for _, s := range spans.GetSpans() {
			if s.Name == "commit" {
				continue
			}
			operations[s.Name]++
			if s.SpanContext.TraceID() != parent.SpanContext().TraceID() || s.Parent.SpanID() != parent.SpanContext().SpanID() {
				t.Errorf("%s is not part of the caller's trace", s.Name)
			}
			if text := fmt.Sprint(s.Attributes, s.Status, s.Events); strings.Contains(text, "SECRETWORD") || !strings.Contains(text, "adkmemory_") && !strings.Contains(text, "pragma") {
				t.Errorf("%s: %s", s.Name, text)
			}
		}
		if operations["db INSERT"] == 0 || operations["db SELECT"]+operations["db WITH"] == 0 {
			t.Errorf("%v", operations)
		}
	})
}

func ExampleUse() {
	store, err := sqlite.Open(context.Background(), ":memory:")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	fmt.Println(gormtrace.Use(nil, store.DB(), store.Reader()))
	// Output: <nil>
}
