// SPDX-License-Identifier: Apache-2.0

// Package spanlog connects a logger to a span: every line is also recorded in the span, with its level and fields, and every field of the span is
// also a field of the logger.
//
// The tracing adapters share this package, so that they behave in the same way.
//
// Note: a line goes to the innermost span only. The logger of an inner span has the fields of the outer span, but does not record lines in
// it.
package spanlog

import (
	"context"
	"maps"
	"sync"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// methodKey is the field with the name of the span.
const methodKey = "method"

// Backend is the span of a tracing library.
type Backend interface {
	// Recording reports whether the span keeps any data.
	Recording() bool
	// Annotate records a log line. It must not keep or change fields.
	Annotate(level, message string, fields log.Fields)
	// SetFields adds attributes to the span. It must not keep or change fields.
	SetFields(fields log.Fields)
}

// Span implements the logging part of a trace.Span.
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

// WithFields adds fields to the span and its logger, and returns a context whose logger also has them. It keeps
// the fields of ctx's own logger.
func (s *Span) WithFields(ctx context.Context, fields log.Fields) context.Context {
	if s.backend.Recording() {
		s.backend.SetFields(fields)
	}
	s.mu.Lock()
	s.logger = s.logger.WithFields(fields)
	s.mu.Unlock()
	return log.WithLogger(ctx, log.G(ctx).WithFields(fields))
}

// mergeFields returns a map with the entries of both; entries of b override entries of a.
func mergeFields(a, b log.Fields) log.Fields {
	all := make(log.Fields, len(a)+len(b))
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}
