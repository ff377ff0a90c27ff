// Package gormtrace gives the statements of a SQL store spans, for whoever looks for time lost in a database. The
// statements' texts are in the spans, the values that they are given never are.
package gormtrace

import (
	"errors"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"gorm.io/gorm"
)

const scope = "github.com/adkmemory/adkmemory/backends/gormstore/gormtrace"

// name is the plugin's, of its callbacks and of the span that it hands from one to the other.
const name = "adkmemory:trace"

// Use traces every statement on the given handles from now on: those of a store are its DB and its Reader. It must come
// before they are used. A nil provider is OpenTelemetry's global one. A handle that is traced already stays as it is.
func Use(tp trace.TracerProvider, handles ...*gorm.DB) error {
	if tp == nil {
		tp = otel.GetTracerProvider()
	}
	var errs []error
	for _, db := range handles {
		if err := db.Use(&plugin{tracer: tp.Tracer(scope)}); err != nil && !errors.Is(err, gorm.ErrRegistered) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

type plugin struct{ tracer trace.Tracer }

// Name implements gorm.Plugin.
func (*plugin) Name() string { return name }

// Initialize implements gorm.Plugin.
func (p *plugin) Initialize(db *gorm.DB) error {
	system := db.Name()
	if system == "postgres" {
		system = "postgresql"
	}
	before := func(tx *gorm.DB) {
		ctx, span := p.tracer.Start(tx.Statement.Context, "db", trace.WithSpanKind(trace.SpanKindClient))
		tx.Statement.Context = ctx
		tx.InstanceSet(name, span)
	}
	after := func(tx *gorm.DB) {
		v, _ := tx.InstanceGet(name)
		span, ok := v.(trace.Span)
		if !ok {
			return
		}
		defer span.End()
		if !span.IsRecording() {
			return
		}
		statement := tx.Statement.SQL.String()
		operation, _, _ := strings.Cut(strings.TrimSpace(statement), " ")
		span.SetName("db " + strings.ToUpper(operation))
		span.SetAttributes(
			attribute.String("db.system.name", system),
			attribute.String("db.operation.name", strings.ToUpper(operation)),
			attribute.String("db.query.text", statement),
		)
		if err := tx.Error; err != nil && !errors.Is(err, gorm.ErrRecordNotFound) {
			span.SetAttributes(attribute.String("error.type", "database"))
			span.SetStatus(codes.Error, "database")
		}
	}
	c := db.Callback()
	return errors.Join(
		c.Create().Before("*").Register(name+":before", before), c.Create().After("*").Register(name+":after", after),
		c.Query().Before("*").Register(name+":before", before), c.Query().After("*").Register(name+":after", after),
		c.Update().Before("*").Register(name+":before", before), c.Update().After("*").Register(name+":after", after),
		c.Delete().Before("*").Register(name+":before", before), c.Delete().After("*").Register(name+":after", after),
		c.Row().Before("*").Register(name+":before", before), c.Row().After("*").Register(name+":after", after),
		c.Raw().Before("*").Register(name+":before", before), c.Raw().After("*").Register(name+":after", after),
	)
}
