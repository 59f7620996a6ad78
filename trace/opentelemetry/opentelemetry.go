// SPDX-License-Identifier: Apache-2.0

// Package opentelemetry lets this library trace through OpenTelemetry.
//
// Spans go to the global tracer provider, under one tracer name: the path of this module. Log lines within a span are also events of the span, with
// the attribute "level" and the fields of the logger. The logger of a span has the field "method", the name of the span.
//
// Note: the kind of an error is the attribute "error.type", because the status of an OpenTelemetry span knows only Ok and Error.
package opentelemetry

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/trace"
	"github.com/virtual-kubelet/virtual-kubelet/trace/internal/spanlog"
)

// tracerName is the instrumentation name of the library's spans.
const tracerName = "github.com/virtual-kubelet/virtual-kubelet"

// errorTypeKey is the attribute that OpenTelemetry's conventions reserve for the class of an error.
const errorTypeKey = "error.type"

// Adapter is a trace.Tracer that opens OpenTelemetry spans. Its zero value is ready to use.
type Adapter struct{}

// StartSpan opens a span named name below the span in ctx.
func (Adapter) StartSpan(ctx context.Context, name string) (context.Context, trace.Span) {
	ctx, s := otel.Tracer(tracerName).Start(ctx, name)
	return ctx, &span{Span: spanlog.Start(ctx, name, backend{s}), ot: s}
}

type span struct {
	*spanlog.Span
	ot oteltrace.Span
}

func (s *span) End() { s.ot.End() }

// SetStatus records the outcome, and the kind and the message of an error.
func (s *span) SetStatus(err error) {
	if err == nil {
		s.ot.SetStatus(codes.Ok, "")
		return
	}
	s.ot.SetStatus(codes.Error, err.Error())
	s.ot.SetAttributes(attribute.String(errorTypeKey, errorKind(err)))
}

func errorKind(err error) string {
	switch {
	case errdefs.IsNotFound(err):
		return "NotFound"
	case errdefs.IsInvalidInput(err):
		return "InvalidInput"
	default:
		return "Unknown"
	}
}

// backend implements spanlog.Backend.
type backend struct{ oteltrace.Span }

func (b backend) Recording() bool { return b.IsRecording() }

func (b backend) SetFields(fields log.Fields) { b.SetAttributes(spanAttributes(fields)...) }

func (b backend) Annotate(level, message string, fields log.Fields) {
	attrs := append(spanAttributes(fields), attribute.String("level", level))
	b.AddEvent(message, oteltrace.WithAttributes(attrs...))
}
