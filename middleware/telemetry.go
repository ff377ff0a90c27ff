package middleware

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/sony/gobreaker/v2"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/observer"
)

// scope is the instrumentation scope of every span and metric.
const scope = "github.com/adkmemory/adkmemory/middleware"

// spanPrefix begins the name of every span but those of model calls; a stage's name follows.
const spanPrefix = "adkmemory."

// The attributes of spans and metrics. docs/telemetry.md describes each.
const (
	attrApp          = "adkmemory.app"
	attrStage        = "adkmemory.stage"
	attrDropReason   = "adkmemory.drop.reason"
	attrNoteID       = "adkmemory.note.id"
	attrNoteKind     = "adkmemory.note.kind"
	attrNoteWriter   = "adkmemory.note.writer"
	attrNoteTokens   = "adkmemory.note.tokens"
	attrNoteText     = "adkmemory.note.text"
	attrGeneration   = "adkmemory.note.generation"
	attrSourceCount  = "adkmemory.source.count"
	attrSourceTokens = "adkmemory.source.tokens"
	attrReplaced     = "adkmemory.compaction.replaced"
	attrContentsIn   = "adkmemory.request.contents"
	attrContentsOut  = "adkmemory.request.contents.sent"
	attrWindow       = "adkmemory.request.window.tokens"
	attrMemory       = "adkmemory.request.memory.tokens"

	attrConversation  = "gen_ai.conversation.id"
	attrOperation     = "gen_ai.operation.name"
	attrProvider      = "gen_ai.provider.name"
	attrRequestModel  = "gen_ai.request.model"
	attrResponseModel = "gen_ai.response.model"
	attrFinishReasons = "gen_ai.response.finish_reasons"
	attrInputTokens   = "gen_ai.usage.input_tokens"
	attrOutputTokens  = "gen_ai.usage.output_tokens"
	attrInstructions  = "gen_ai.system_instructions"
	attrInput         = "gen_ai.input.messages"
	attrOutput        = "gen_ai.output.messages"
	attrTokenType     = "gen_ai.token.type"
	attrErrorType     = "error.type"
)

// stage is a part of the work that has a span and a duration.
type stage int

const (
	stageLoad stage = iota // has no span
	stageRetrieve
	stageAssemble
	stageProcess
	stageObserve
	stageReflect
	stageCommit
	stageCompact
	stageCount
)

var stageNames = [stageCount]string{"load", "retrieve", "assemble", "process", "observe", "reflect", "commit", "compact"}

func (s stage) String() string { return stageNames[s] }

type telemetry struct {
	tracer  trace.Tracer
	metrics *metrics
	content bool
}

func newTelemetry(m *Middleware) (*telemetry, error) {
	tp, mp := m.deps.TracerProvider, m.deps.MeterProvider
	if tp == nil {
		tp = otel.GetTracerProvider()
	}
	if mp == nil {
		mp = otel.GetMeterProvider()
	}
	metrics, err := newMetrics(mp, &m.stats)
	if err != nil {
		return nil, err
	}
	return &telemetry{
		tracer:  tp.Tracer(scope, trace.WithInstrumentationVersion(version())),
		metrics: metrics, content: m.cfg.CaptureContent,
	}, nil
}

// version is the library's version in the running program.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == "github.com/adkmemory/adkmemory" {
				return dep.Version
			}
		}
	}
	return "devel"
}

// activity is a stage under way.
type activity struct {
	t     *telemetry
	stage stage
	begin time.Time
	span  trace.Span
}

// start begins a stage with its span. Work in the background is linked to the turn that caused it.
func (t *telemetry) start(ctx context.Context, s stage, key backends.SessionKey, link trace.SpanContext) (context.Context, activity) {
	a := activity{t: t, stage: s, begin: time.Now()}
	ctx, a.span = t.tracer.Start(ctx, spanPrefix+stageNames[s])
	if a.span.IsRecording() {
		a.span.SetAttributes(attribute.String(attrConversation, key.Session), attribute.String(attrApp, key.App))
		if link.IsValid() {
			a.span.AddLink(trace.Link{SpanContext: link})
		}
	}
	return ctx, a
}

// end closes a stage with its outcome. Error texts of models may quote the conversation: only their type is kept.
func (a activity) end(err error) {
	a.t.metrics.stages[a.stage].record(time.Since(a.begin).Seconds())
	fail(a.span, err)
	a.span.End()
}

// sent describes what a turn sends, in the metrics and on the span of its assembly.
func (t *telemetry) sent(ctx context.Context, contents int, d decision) {
	t.metrics.window.recordInt(d.window.Tokens)
	t.metrics.memory.recordInt(d.section.Tokens)
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(
			attribute.Int(attrContentsIn, contents),
			attribute.Int(attrContentsOut, len(d.window.Contents)),
			attribute.Int(attrWindow, d.window.Tokens),
			attribute.Int(attrMemory, d.section.Tokens),
		)
	}
}

func fail(span trace.Span, err error) {
	if err != nil && span.IsRecording() {
		span.SetAttributes(attribute.String(attrErrorType, errorType(err)))
		span.SetStatus(codes.Error, errorType(err))
	}
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
		{observer.ErrNoModel, "no_model"},
		{gobreaker.ErrOpenState, "breaker_open"},
		{gobreaker.ErrTooManyRequests, "breaker_open"},
		{context.DeadlineExceeded, "timeout"},
		{context.Canceled, "cancelled"},
	} {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	if answered := (*observer.ResponseError)(nil); errors.As(err, &answered) {
		return answered.Code
	}
	return "_OTHER"
}

// wrote describes a note that was stored: its size against that of its sources.
func (a activity) wrote(n backends.Note, generation, sources, sourceTokens int) {
	kind := kindObservation
	if generation > 0 {
		kind = kindReflection
	}
	a.t.metrics.note(kind, n.Tokens, sourceTokens)
	if !a.span.IsRecording() {
		return
	}
	a.span.SetAttributes(
		attribute.String(attrNoteID, n.ID),
		attribute.String(attrNoteWriter, n.Writer),
		attribute.Int(attrNoteTokens, n.Tokens),
		attribute.Int(attrSourceCount, sources),
		attribute.Int(attrSourceTokens, sourceTokens),
	)
	if generation > 0 {
		a.span.SetAttributes(attribute.Int(attrGeneration, generation))
	}
	if a.t.content {
		a.span.SetAttributes(attribute.String(attrNoteText, n.Text))
	}
}
