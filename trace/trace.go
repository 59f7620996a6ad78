// SPDX-License-Identifier: Apache-2.0

// Package trace holds the span interface of this library and carries a tracer in a context.
//
// The library opens spans only through StartSpan, so a program chooses the tracing library: adapters for OpenTelemetry and OpenCensus are in the
// subpackages.
//
// Note: a span also carries a logger. Fields added to a span are also added to the logger of the returned context, even without a tracer.
package trace

import (
	"context"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// T is the default tracer, used when a context carries none. It records nothing until a program assigns another
// tracer, which must happen before the library is used.
var T Tracer = nopTracer{}

// Tracer opens spans.
type Tracer interface {
	// StartSpan opens a span named name below the span in ctx and returns a context with the new span. The
	// caller ends it with End.
	StartSpan(ctx context.Context, name string) (context.Context, Span)
}

// Span is an operation with a start, an end and an outcome.
type Span interface {
	// End closes the span.
	End()
	// SetStatus records the outcome; nil means success.
	SetStatus(err error)
	// WithField adds a named value to the span and returns a context whose logger also has the value.
	WithField(ctx context.Context, key string, value any) context.Context
	// WithFields is WithField for several values.
	WithFields(ctx context.Context, fields log.Fields) context.Context
	// Logger returns the logger of the span, or nil when the span has none.
	Logger() log.Logger
}

type contextKey struct{}

// WithTracer returns a context that carries t.
func WithTracer(ctx context.Context, t Tracer) context.Context {
	return context.WithValue(ctx, contextKey{}, t)
}

// StartSpan opens a span with the tracer in ctx, or else with T. The returned context carries the span and, when the span has one, its logger.
func StartSpan(ctx context.Context, name string) (context.Context, Span) {
	t, ok := ctx.Value(contextKey{}).(Tracer)
	if !ok || t == nil {
		t = T
	}
	ctx, span := t.StartSpan(ctx, name)
	return log.WithLogger(ctx, span.Logger()), span
}
