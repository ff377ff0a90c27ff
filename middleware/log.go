package middleware

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// tracedLog adds the ids of the context's span to every record, so that a log line leads to its trace.
type tracedLog struct{ slog.Handler }

// Handle implements slog.Handler.
func (h tracedLog) Handle(ctx context.Context, r slog.Record) error {
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", sc.TraceID().String()), slog.String("span_id", sc.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h tracedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return tracedLog{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h tracedLog) WithGroup(name string) slog.Handler { return tracedLog{h.Handler.WithGroup(name)} }
