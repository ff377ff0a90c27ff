package middleware

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/genai"

	"google.golang.org/adk/v2/model"
)

// generateContent is the operation's name in the semantic conventions for generative AI.
const generateContent = "generate_content"

// maxCapturedBytes bounds one attribute that holds content.
const maxCapturedBytes = 64 << 10

// traced gives the model calls of Observer and Reflector a span and metrics; ADK does so for those of agents.
type traced struct {
	model.LLM
	t        *telemetry
	provider string
}

// traced wraps a model that writes notes. provider is the configuration's name for it, if it was configured.
func (t *telemetry) traced(llm model.LLM, provider string) model.LLM {
	if llm == nil {
		return nil
	}
	return traced{LLM: llm, t: t, provider: providerName(llm, provider)}
}

// providerName translates to the conventions' names where they have one.
func providerName(llm model.LLM, configured string) string {
	if v, ok := llm.(variant); ok {
		switch v.GetGoogleLLMVariant() {
		case genai.BackendGeminiAPI:
			return "gcp.gemini"
		case genai.BackendVertexAI:
			return "gcp.vertex_ai"
		}
	}
	if configured = strings.ToLower(configured); configured == "gemini" {
		return "gcp.gemini"
	}
	return configured
}

// Unwrap returns the model without telemetry.
func (m traced) Unwrap() model.LLM { return m.LLM }

// GenerateContent implements model.LLM.
func (m traced) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		name := m.LLM.Name()
		attrs := []attribute.KeyValue{attribute.String(attrOperation, generateContent), attribute.String(attrRequestModel, name)}
		if m.provider != "" {
			attrs = append(attrs, attribute.String(attrProvider, m.provider))
		}
		begin := time.Now()
		ctx, span := m.t.tracer.Start(ctx, generateContent+" "+name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
		if m.t.content && span.IsRecording() {
			if req.Config != nil {
				span.SetAttributes(captured(attrInstructions, req.Config.SystemInstruction))
			}
			span.SetAttributes(captured(attrInput, req.Contents))
		}
		var last *model.LLMResponse
		var failed error
		defer func() { m.ended(ctx, span, attrs, begin, last, failed) }()
		for resp, err := range m.LLM.GenerateContent(ctx, req, stream) {
			if failed = err; err == nil && resp != nil {
				last = resp
				if resp.ErrorCode != "" {
					span.SetAttributes(attribute.String(attrErrorType, resp.ErrorCode))
				}
			}
			if !yield(resp, err) {
				return
			}
		}
	}
}

func (m traced) ended(ctx context.Context, span trace.Span, attrs []attribute.KeyValue, begin time.Time, last *model.LLMResponse, err error) {
	defer span.End()
	fail(span, err)
	if last != nil {
		if last.ModelVersion != "" {
			span.SetAttributes(attribute.String(attrResponseModel, last.ModelVersion))
		}
		if last.FinishReason != "" {
			span.SetAttributes(attribute.StringSlice(attrFinishReasons, []string{string(last.FinishReason)}))
		}
		if u := last.UsageMetadata; u != nil {
			in, out := int64(u.PromptTokenCount), int64(u.CandidatesTokenCount)+int64(u.ThoughtsTokenCount)
			span.SetAttributes(attribute.Int64(attrInputTokens, in), attribute.Int64(attrOutputTokens, out))
			record := func(kind string, n int64) {
				m.t.metrics.usage.Record(ctx, n, metric.WithAttributes(attrs...), metric.WithAttributes(attribute.String(attrTokenType, kind)))
			}
			record("input", in)
			record("output", out)
		}
		if m.t.content {
			span.SetAttributes(captured(attrOutput, last.Content))
		}
	}
	options := []metric.RecordOption{metric.WithAttributes(attrs...)}
	if err != nil {
		options = append(options, metric.WithAttributes(attribute.String(attrErrorType, errorType(err))))
	}
	m.t.metrics.operation.Record(ctx, time.Since(begin).Seconds(), options...)
}

func captured(name string, v any) attribute.KeyValue {
	raw, _ := json.Marshal(v)
	return attribute.String(name, cut(string(raw), maxCapturedBytes))
}
