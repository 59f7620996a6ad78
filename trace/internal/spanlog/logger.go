// SPDX-License-Identifier: Apache-2.0

package spanlog

import (
	"fmt"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// errorKey is the name of the field of WithError in the span: the same as in contextual logging of Kubernetes.
const errorKey = "err"

// deeper is implemented by loggers that can take source positions from further up the stack. Without it, lines would report this file.
type deeper interface {
	WithCallDepth(n int) log.Logger
}

// logger writes each line to the sink and to a span.
type logger struct {
	sink    log.Logger // the logger of the program, outside of all spans
	backend Backend
	fields  log.Fields // fields in addition to those of sink; never changed once the logger exists
	err     error      // of the last WithError
	withErr bool       // WithError was called, maybe with nil
	out     log.Logger // sink with fields and err
}

func (l *logger) Debug(args ...any) { l.recordLine("debug", args); l.out.Debug(args...) }
func (l *logger) Info(args ...any)  { l.recordLine("info", args); l.out.Info(args...) }
func (l *logger) Warn(args ...any)  { l.recordLine("warn", args); l.out.Warn(args...) }
func (l *logger) Error(args ...any) { l.recordLine("error", args); l.out.Error(args...) }
func (l *logger) Fatal(args ...any) { l.recordLine("fatal", args); l.out.Fatal(args...) }

func (l *logger) Debugf(format string, args ...any) {
	l.recordLinef("debug", format, args)
	l.out.Debugf(format, args...)
}

func (l *logger) Infof(format string, args ...any) {
	l.recordLinef("info", format, args)
	l.out.Infof(format, args...)
}

func (l *logger) Warnf(format string, args ...any) {
	l.recordLinef("warn", format, args)
	l.out.Warnf(format, args...)
}

func (l *logger) Errorf(format string, args ...any) {
	l.recordLinef("error", format, args)
	l.out.Errorf(format, args...)
}

func (l *logger) Fatalf(format string, args ...any) {
	l.recordLinef("fatal", format, args)
	l.out.Fatalf(format, args...)
}

func (l *logger) WithField(key string, value any) log.Logger {
	return l.WithFields(log.Fields{key: value})
}

func (l *logger) WithFields(fields log.Fields) log.Logger {
	next := *l
	next.fields = mergeFields(l.fields, fields)
	next.openSink()
	return &next
}

func (l *logger) WithError(err error) log.Logger {
	next := *l
	next.err, next.withErr = err, true
	next.openSink()
	return &next
}

// openSink sets out to the sink with all fields. It starts from the sink, so that a field that was set twice is written once even if the logging
// library keeps every value. The sink chooses the name of the error's field.
func (l *logger) openSink() {
	l.out = l.sink.WithFields(l.fields)
	if l.withErr {
		l.out = l.out.WithError(l.err)
	}
	if d, ok := l.out.(deeper); ok {
		l.out = d.WithCallDepth(1)
	}
}

func (l *logger) recordLine(level string, args []any) {
	if l.backend.Recording() {
		l.backend.Annotate(level, fmt.Sprint(args...), l.recordedFields())
	}
}

func (l *logger) recordLinef(level, format string, args []any) {
	if l.backend.Recording() {
		l.backend.Annotate(level, fmt.Sprintf(format, args...), l.recordedFields())
	}
}

func (l *logger) recordedFields() log.Fields {
	if !l.withErr {
		return l.fields
	}
	return mergeFields(l.fields, log.Fields{errorKey: l.err})
}
