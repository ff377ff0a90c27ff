package middleware

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/observer"
)

// scope is the instrumentation scope of every span and metric.
const scope = "github.com/adkmemory/adkmemory/middleware"

type telemetry struct {
	tracer  trace.Tracer
	content bool
}

func newTelemetry(m *Middleware) (*telemetry, error) {
	tp := m.deps.TracerProvider
	if tp == nil {
		tp = otel.GetTracerProvider()
	}
	return &telemetry{tracer: tp.Tracer(scope), content: m.cfg.CaptureContent}, nil
}

// start opens a span of the background, linked to the turn that caused it.
func (t *telemetry) start(ctx context.Context, name string, key backends.SessionKey, link trace.SpanContext) (context.Context, trace.Span) {
	opts := []trace.SpanStartOption{trace.WithAttributes(
		attribute.String("gen_ai.conversation.id", key.Session),
		attribute.String("adkmemory.app", key.App),
	)}
	if link.IsValid() {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: link}))
	}
	return t.tracer.Start(ctx, "adkmemory."+name, opts...)
}

// end closes a span with the outcome. Error texts of models may quote the conversation: only their type is kept.
func (t *telemetry) end(span trace.Span, err error) {
	if err != nil {
		span.SetAttributes(attribute.String("error.type", errorType(err)))
		span.SetStatus(codes.Error, errorType(err))
	}
	span.End()
}

func errorType(err error) string {
	for _, known := range []struct {
		err  error
		name string
	}{
		{backends.ErrConflict, "conflict"},
		{backends.ErrTooLarge, "too_large"},
		{backends.ErrClosed, "store_closed"},
		{observer.ErrRejected, "note_rejected"},
		{context.DeadlineExceeded, "timeout"},
		{context.Canceled, "cancelled"},
	} {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	return "_OTHER"
}

// wrote describes a stored note.
func (t *telemetry) wrote(span trace.Span, n backends.Note, sources, sourceTokens int) {
	span.SetAttributes(
		attribute.String("adkmemory.note.id", n.ID),
		attribute.String("adkmemory.note.writer", n.Writer),
		attribute.Int("adkmemory.note.tokens", n.Tokens),
		attribute.Int("adkmemory.source.count", sources),
		attribute.Int("adkmemory.source.tokens", sourceTokens),
	)
	if t.content {
		span.SetAttributes(attribute.String("adkmemory.note.text", n.Text))
	}
}
