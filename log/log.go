// SPDX-License-Identifier: Apache-2.0

// Package log holds the logger interface of this library and carries a logger in a context.
//
// The library logs only through log.G(ctx), so a program chooses the logging library: adapters for logrus, klog
// and slog are in the subpackages.
//
// Note: nothing is logged until the program assigns L; the default logger discards everything.
package log

import "context"

// L is the default logger, used when a context carries none. It discards everything until a program assigns
// another logger. Assign it before using the library.
var L Logger = nop{}

// G is a short alias for GetLogger. It is a variable, so a program may replace the lookup of loggers.
var G = GetLogger

// Fields are named values attached to log lines.
type Fields map[string]any

// Logger is the library's interface to a logging library. Implementations must be safe for concurrent use. Fatal
// and Fatalf may end the process.
type Logger interface {
	Debug(args ...any)
	Debugf(format string, args ...any)
	Info(args ...any)
	Infof(format string, args ...any)
	Warn(args ...any)
	Warnf(format string, args ...any)
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)

	// WithField returns a logger with one named value in each line.
	WithField(key string, value any) Logger
	// WithFields returns a logger with the named values in each line.
	WithFields(fields Fields) Logger
	// WithError returns a logger with err in each line.
	WithError(err error) Logger
}

type contextKey struct{}

// WithLogger returns a context with logger. A nil logger leaves ctx unchanged.
func WithLogger(ctx context.Context, logger Logger) context.Context {
	if logger == nil {
		return ctx
	}
	return context.WithValue(ctx, contextKey{}, logger)
}

// GetLogger returns the logger of ctx, or else L. It panics if there is neither, which happens only if a program sets L to nil.
func GetLogger(ctx context.Context) Logger {
	if logger, ok := ctx.Value(contextKey{}).(Logger); ok {
		return logger
	}
	if L == nil {
		panic("default logger not initialized")
	}
	return L
}
