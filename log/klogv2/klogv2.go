// SPDX-License-Identifier: Apache-2.0

// Package klogv2 lets this library log through klog.
//
// Fields follow the message, sorted by name: "pod created [node=n pod=p]". Lines keep the caller's file and
// line.
//
// Note: debug lines appear from verbosity 4 on (-v=4, or -vmodule for the calling file), and Fatal ends
// the process with all stacks, as klog does.
package klogv2

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/klog/v2"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// debugVerbosity is the minimum klog verbosity for debug lines.
const debugVerbosity = 4

// errorKey is the name of the field of WithError.
const errorKey = "err"

type adapter struct {
	fields log.Fields // never changed once the adapter exists
	depth  int        // frames between the caller and klog
}

// New returns a logger that writes through klog, with fields, which may be nil. Fields are copied.
func New(fields log.Fields) log.Logger {
	return &adapter{fields: maps.Clone(fields), depth: 1}
}

func (a *adapter) Debug(args ...any) {
	if v := klog.VDepth(a.depth, debugVerbosity); v.Enabled() {
		v.InfoDepth(a.depth, a.formatLine(args))
	}
}

func (a *adapter) Debugf(format string, args ...any) {
	if v := klog.VDepth(a.depth, debugVerbosity); v.Enabled() {
		v.InfoDepth(a.depth, a.formatLinef(format, args))
	}
}

func (a *adapter) Info(args ...any) { klog.InfoDepth(a.depth, a.formatLine(args)) }

func (a *adapter) Infof(format string, args ...any) {
	klog.InfoDepth(a.depth, a.formatLinef(format, args))
}

func (a *adapter) Warn(args ...any) { klog.WarningDepth(a.depth, a.formatLine(args)) }

func (a *adapter) Warnf(format string, args ...any) {
	klog.WarningDepth(a.depth, a.formatLinef(format, args))
}

func (a *adapter) Error(args ...any) { klog.ErrorDepth(a.depth, a.formatLine(args)) }

func (a *adapter) Errorf(format string, args ...any) {
	klog.ErrorDepth(a.depth, a.formatLinef(format, args))
}

func (a *adapter) Fatal(args ...any) { klog.FatalDepth(a.depth, a.formatLine(args)) }

func (a *adapter) Fatalf(format string, args ...any) {
	klog.FatalDepth(a.depth, a.formatLinef(format, args))
}

func (a *adapter) WithField(key string, value any) log.Logger {
	return a.WithFields(log.Fields{key: value})
}

func (a *adapter) WithFields(fields log.Fields) log.Logger {
	all := make(log.Fields, len(a.fields)+len(fields))
	maps.Copy(all, a.fields)
	maps.Copy(all, fields)
	return &adapter{fields: all, depth: a.depth}
}

func (a *adapter) WithError(err error) log.Logger {
	return a.WithField(errorKey, err)
}

// WithCallDepth returns a logger that reports source positions n frames further up the stack, for a logger that wraps this one.
func (a *adapter) WithCallDepth(n int) log.Logger {
	return &adapter{fields: a.fields, depth: a.depth + n}
}

func (a *adapter) formatLine(args []any) string {
	return fmt.Sprint(args...) + a.fieldSuffix()
}

func (a *adapter) formatLinef(format string, args []any) string {
	return fmt.Sprintf(format, args...) + a.fieldSuffix()
}

func (a *adapter) fieldSuffix() string {
	if len(a.fields) == 0 {
		return ""
	}
	pairs := make([]string, 0, len(a.fields))
	for _, key := range slices.Sorted(maps.Keys(a.fields)) {
		pairs = append(pairs, fmt.Sprintf("%s=%v", key, a.fields[key]))
	}
	return " [" + strings.Join(pairs, " ") + "]"
}
