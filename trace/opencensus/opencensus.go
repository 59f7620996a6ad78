// SPDX-License-Identifier: Apache-2.0

// Package opencensus lets this library trace through OpenCensus, for programs still using it. New programs use package opentelemetry.
//
// Log lines within a span are also annotations of the span, with the attribute "level" and the fields of the logger. The logger of a span has the
// field "method", the name of the span.
//
// Note: no other package of this module imports OpenCensus. Its authors no longer maintain it.
package opencensus

import (
	"context"

	octrace "go.opencensus.io/trace"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/trace"
	"github.com/virtual-kubelet/virtual-kubelet/trace/internal/spanlog"
)

// Adapter is a trace.Tracer for OpenCensus spans. Its zero value is ready to use.
type Adapter struct{}

// StartSpan opens a span named name below the span in ctx.
func (Adapter) StartSpan(ctx context.Context, name string) (context.Context, trace.Span) {
	ctx, s := octrace.StartSpan(ctx, name)
	return ctx, &span{Span: spanlog.Start(ctx, name, backend{s}), oc: s}
}

type span struct {
	*spanlog.Span
	oc *octrace.Span
}

func (s *span) End() { s.oc.End() }

// SetStatus records the status code for the kind of err.
func (s *span) SetStatus(err error) {
	switch {
	case err == nil:
		s.oc.SetStatus(octrace.Status{Code: octrace.StatusCodeOK})
	case errdefs.IsNotFound(err):
		s.oc.SetStatus(octrace.Status{Code: octrace.StatusCodeNotFound, Message: err.Error()})
	case errdefs.IsInvalidInput(err):
		s.oc.SetStatus(octrace.Status{Code: octrace.StatusCodeInvalidArgument, Message: err.Error()})
	default:
		s.oc.SetStatus(octrace.Status{Code: octrace.StatusCodeUnknown, Message: err.Error()})
	}
}

// backend implements spanlog.Backend.
type backend struct{ *octrace.Span }

func (b backend) Recording() bool { return b.IsRecordingEvents() }

func (b backend) SetFields(fields log.Fields) { b.AddAttributes(spanAttributes(fields)...) }

// Annotate records a line. It adds the level last, so that a field of the same name cannot hide it.
func (b backend) Annotate(level, message string, fields log.Fields) {
	attrs := append(spanAttributes(fields), octrace.StringAttribute("level", level))
	b.Span.Annotate(attrs, message)
}
