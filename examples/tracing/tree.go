package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// printTrees prints every trace, in the order in which they began.
func printTrees(out io.Writer, spans tracetest.SpanStubs) {
	names := make(map[trace.SpanID]string, len(spans))
	children := make(map[trace.SpanID][]tracetest.SpanStub)
	for _, s := range spans {
		names[s.SpanContext.SpanID()] = s.Name
	}
	for _, s := range spans {
		parent := s.Parent.SpanID()
		if names[parent] == "" {
			parent = trace.SpanID{}
		}
		children[parent] = append(children[parent], s)
	}
	for _, c := range children {
		slices.SortFunc(c, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	}
	for _, root := range children[trace.SpanID{}] {
		fmt.Fprintf(out, "trace %s\n", root.SpanContext.TraceID())
		printTree(out, root, names, children, "", "")
		fmt.Fprintln(out)
	}
}

func printTree(out io.Writer, s tracetest.SpanStub, names map[trace.SpanID]string, children map[trace.SpanID][]tracetest.SpanStub, first, rest string) {
	var notes []string
	for _, link := range s.Links {
		notes = append(notes, fmt.Sprintf("⇢ %s of trace %s…", cmp.Or(names[link.SpanContext.SpanID()], "a span"), link.SpanContext.TraceID().String()[:8]))
	}
	for _, kv := range s.Attributes {
		if kv.Value.Type() == attribute.INT64 && (strings.HasPrefix(string(kv.Key), "adkmemory.") || strings.HasPrefix(string(kv.Key), "gen_ai.usage.")) {
			notes = append(notes, fmt.Sprintf("%s=%d", kv.Key, kv.Value.AsInt64()))
		}
	}
	fmt.Fprintf(out, "%s%s  %v  %s\n", first, s.Name, s.EndTime.Sub(s.StartTime).Round(time.Microsecond), strings.Join(notes, " "))
	below := children[s.SpanContext.SpanID()]
	for i, c := range below {
		branch, line := "├─ ", "│  "
		if i == len(below)-1 {
			branch, line = "└─ ", "   "
		}
		printTree(out, c, names, children, rest+branch, rest+line)
	}
}
