// SPDX-License-Identifier: Apache-2.0

// Package slog lets this library log through the standard library's slog.
//
// Arguments are joined as fmt.Sprint does, regardless of their types. Lines keep the caller's file and line. A
// repeated field appears once, with its last value.
//
// Note: Fatal logs at LevelFatal and does not end the process, because slog has no such feature; a
// program can add it in a handler.
package slog

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// LevelFatal is the level of Fatal and Fatalf: one step above slog.LevelError.
const LevelFatal = slog.Level(12)

// errorKey is the name of the attribute of WithError, as in klog.
const errorKey = "err"

// adapter is a logger with a chain of fields. Most adapters log nothing, so a field only allocates one small object, and the first line makes the
// handler with all fields.
type adapter struct {
	base *slog.Logger
	skip int // frames between the caller and runtime.Callers

	parent *adapter // the fields before this one; nil: this adapter has no field
	key    string
	value  any

	once    sync.Once
	handler slog.Handler // base's, with the fields; set by once
}

// ownFrames is the number of frames in this package between a caller of Info and similar methods and
// runtime.Callers; runtime.Callers counts itself.
const ownFrames = 3

// FromSlog returns a logger on top of logger, with its attributes and groups.
func FromSlog(logger *slog.Logger) log.Logger {
	return &adapter{base: logger, skip: ownFrames}
}

func (a *adapter) Debug(args ...any)                 { a.printLine(slog.LevelDebug, args) }
func (a *adapter) Debugf(format string, args ...any) { a.printLinef(slog.LevelDebug, format, args) }
func (a *adapter) Info(args ...any)                  { a.printLine(slog.LevelInfo, args) }
func (a *adapter) Infof(format string, args ...any)  { a.printLinef(slog.LevelInfo, format, args) }
func (a *adapter) Warn(args ...any)                  { a.printLine(slog.LevelWarn, args) }
func (a *adapter) Warnf(format string, args ...any)  { a.printLinef(slog.LevelWarn, format, args) }
func (a *adapter) Error(args ...any)                 { a.printLine(slog.LevelError, args) }
func (a *adapter) Errorf(format string, args ...any) { a.printLinef(slog.LevelError, format, args) }
func (a *adapter) Fatal(args ...any)                 { a.printLine(LevelFatal, args) }
func (a *adapter) Fatalf(format string, args ...any) { a.printLinef(LevelFatal, format, args) }

func (a *adapter) WithField(key string, value any) log.Logger { return a.withField(key, value) }

func (a *adapter) WithFields(fields log.Fields) log.Logger {
	next := a
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		next = next.withField(key, fields[key])
	}
	return next
}

func (a *adapter) withField(key string, value any) *adapter {
	return &adapter{base: a.base, skip: a.skip, parent: a, key: key, value: value}
}

// fieldHandler returns the handler with the fields, in the order of their first values.
func (a *adapter) fieldHandler() slog.Handler {
	a.once.Do(func() {
		a.handler = a.base.Handler()
		if attrs := a.fieldAttrs(); len(attrs) > 0 {
			a.handler = a.handler.WithAttrs(attrs)
		}
	})
	return a.handler
}

func (a *adapter) fieldAttrs() (attrs []slog.Attr) {
	if a.parent == nil {
		return nil
	}
	attrs = a.parent.fieldAttrs()
	attr := slog.Any(a.key, a.value)
	if i := slices.IndexFunc(attrs, func(b slog.Attr) bool { return b.Key == a.key }); i >= 0 {
		attrs[i] = attr
		return attrs
	}
	return append(attrs, attr)
}

func (a *adapter) WithError(err error) log.Logger {
	return a.WithField(errorKey, err)
}

// WithCallDepth returns a logger that reports source positions n frames further up the stack, for a logger that wraps this one.
func (a *adapter) WithCallDepth(n int) log.Logger {
	return &adapter{base: a.base, skip: a.skip + n, parent: a.parent, key: a.key, value: a.value}
}

func (a *adapter) printLine(level slog.Level, args []any) {
	if !a.fieldHandler().Enabled(context.Background(), level) {
		return
	}
	var pc [1]uintptr
	runtime.Callers(a.skip, pc[:])
	a.write(level, pc[0], fmt.Sprint(args...))
}

func (a *adapter) printLinef(level slog.Level, format string, args []any) {
	if !a.fieldHandler().Enabled(context.Background(), level) {
		return
	}
	var pc [1]uintptr
	runtime.Callers(a.skip, pc[:])
	a.write(level, pc[0], fmt.Sprintf(format, args...))
}

func (a *adapter) write(level slog.Level, pc uintptr, message string) {
	record := slog.NewRecord(time.Now(), level, message, pc)
	// The error of a failed write cannot be reported.
	_ = a.fieldHandler().Handle(context.Background(), record)
}
