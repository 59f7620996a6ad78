// SPDX-License-Identifier: Apache-2.0

// Package spanlog ties a logger to a span: every line is also recorded in the
// span, with its level and fields, and every field of the span is also a field
// of the logger.
//
// It holds what the tracing adapters have in common, so that they behave
// alike.
//
// What surprises: a line goes to the innermost span only. The logger of a
// span inside another one takes over the outer fields, not the outer recording.
package spanlog

import (
	"context"
	"maps"
	"sync"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// methodKey names the field that carries the name of the span.
const methodKey = "method"

// Backend is the span of a tracing library.
type Backend interface {
	// Recording tells whether anything that is handed over is kept.
	Recording() bool
	// Annotate records a log line. It must not keep or change fields.
	Annotate(level, message string, fields log.Fields)
	// SetFields adds attributes to the span. It must not keep or change fields.
	SetFields(fields log.Fields)
}

// Span is the half of a trace.Span that concerns logging.
type Span struct {
	backend Backend

	mu     sync.Mutex
	logger log.Logger // guarded by mu
}

// Start returns the Span for backend, named name. Its logger writes to the
// logger of ctx, with the name in the field "method".
func Start(ctx context.Context, name string, backend Backend) *Span {
	l := logger{sink: log.G(ctx)}
	if outer, ok := l.sink.(*logger); ok {
		l = *outer
	}
	l.backend = backend
	return &Span{backend: backend, logger: l.WithField(methodKey, name)}
}

// Logger returns the logger of the span, with every field set so far.
func (s *Span) Logger() log.Logger {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logger
}

// WithField is WithFields for one field.
func (s *Span) WithField(ctx context.Context, key string, value any) context.Context {
	return s.WithFields(ctx, log.Fields{key: value})
}

// WithFields adds fields to the span and its logger, and returns a context
// whose logger has them too. Fields that ctx's own logger has are kept.
func (s *Span) WithFields(ctx context.Context, fields log.Fields) context.Context {
	if s.backend.Recording() {
		s.backend.SetFields(fields)
	}
	s.mu.Lock()
	s.logger = s.logger.WithFields(fields)
	s.mu.Unlock()
	return log.WithLogger(ctx, log.G(ctx).WithFields(fields))
}

// merge returns a map with the entries of both; those of b win.
func merge(a, b log.Fields) log.Fields {
	all := make(log.Fields, len(a)+len(b))
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}
