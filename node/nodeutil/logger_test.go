// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// lineLogger records each log entry as a line: level, message, fields.
type lineLogger struct {
	mu    sync.Mutex
	lines []string
}

func (l *lineLogger) into(ctx context.Context) context.Context {
	return log.WithLogger(ctx, fieldLogger{l, ""})
}

func (l *lineLogger) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

type fieldLogger struct {
	to     *lineLogger
	fields string
}

func (l fieldLogger) put(level, text string) {
	l.to.mu.Lock()
	defer l.to.mu.Unlock()
	l.to.lines = append(l.to.lines, level+" "+text+l.fields)
}

func (l fieldLogger) Debug(a ...any)            { l.put("debug", fmt.Sprint(a...)) }
func (l fieldLogger) Debugf(f string, a ...any) { l.put("debug", fmt.Sprintf(f, a...)) }
func (l fieldLogger) Info(a ...any)             { l.put("info", fmt.Sprint(a...)) }
func (l fieldLogger) Infof(f string, a ...any)  { l.put("info", fmt.Sprintf(f, a...)) }
func (l fieldLogger) Warn(a ...any)             { l.put("warn", fmt.Sprint(a...)) }
func (l fieldLogger) Warnf(f string, a ...any)  { l.put("warn", fmt.Sprintf(f, a...)) }
func (l fieldLogger) Error(a ...any)            { l.put("error", fmt.Sprint(a...)) }
func (l fieldLogger) Errorf(f string, a ...any) { l.put("error", fmt.Sprintf(f, a...)) }
func (l fieldLogger) Fatal(a ...any)            { l.put("fatal", fmt.Sprint(a...)) }
func (l fieldLogger) Fatalf(f string, a ...any) { l.put("fatal", fmt.Sprintf(f, a...)) }

func (l fieldLogger) WithField(key string, value any) log.Logger {
	return fieldLogger{l.to, fmt.Sprintf("%s %s=%v", l.fields, key, value)}
}

func (l fieldLogger) WithFields(fields log.Fields) log.Logger {
	return l.WithField("fields", fields)
}

func (l fieldLogger) WithError(err error) log.Logger { return l.WithField("error", err) }
