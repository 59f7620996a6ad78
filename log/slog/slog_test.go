// SPDX-License-Identifier: Apache-2.0

package slog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	vkslog "github.com/virtual-kubelet/virtual-kubelet/log/slog"
)

// capture returns a logger and a function that decodes the last line it wrote.
func capture(t *testing.T, level slog.Level, with func(*slog.Logger) *slog.Logger) (log.Logger, func() map[string]any) {
	t.Helper()
	var buf bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&buf, &slog.HandlerOptions{AddSource: true, Level: level}))
	if with != nil {
		logger = with(logger)
	}
	last := func() map[string]any {
		t.Helper()
		defer buf.Reset()
		if buf.Len() == 0 {
			return nil
		}
		lines := strings.Split(strings.TrimSpace(buf.String()), "\n")
		var line map[string]any
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &line); err != nil {
			t.Fatalf("decode %q: %v", lines[len(lines)-1], err)
		}
		return line
	}
	return vkslog.FromSlog(logger), last
}

func TestLevelsAndMessages(t *testing.T) {
	l, last := capture(t, slog.LevelDebug, nil)
	tests := []struct {
		call           func()
		level, message string
	}{
		{func() { l.Debug("a", 1) }, "DEBUG", "a1"},
		{func() { l.Debugf("a %d", 1) }, "DEBUG", "a 1"},
		{func() { l.Info("b") }, "INFO", "b"},
		{func() { l.Infof("b %d", 2) }, "INFO", "b 2"},
		{func() { l.Warn("c") }, "WARN", "c"},
		{func() { l.Warnf("c %d", 3) }, "WARN", "c 3"},
		{func() { l.Error("100%") }, "ERROR", "100%"},
		{func() { l.Errorf("d %d", 4) }, "ERROR", "d 4"},
	}
	for _, tt := range tests {
		tt.call()
		if got := last(); got["level"] != tt.level || got["msg"] != tt.message {
			t.Errorf("got %v %q, want %s %q", got["level"], got["msg"], tt.level, tt.message)
		}
	}
}

func TestFirstArgumentMayHaveAnyType(t *testing.T) {
	l, last := capture(t, slog.LevelInfo, nil)
	for want, args := range map[string][]any{
		"boom":  {errors.New("boom")},
		"7":     {7},
		"<nil>": {nil},
		"1 2":   {1, 2},
		"":      {},
	} {
		l.Error(args...)
		if got := last()["msg"]; got != want {
			t.Errorf("Error(%v) wrote %q, want %q", args, got, want)
		}
	}
}

func TestFatalLogsAtLevel12AndReturns(t *testing.T) {
	l, last := capture(t, vkslog.LevelFatal, nil)
	l.Fatal("the", " end")
	if got := last(); got["level"] != "ERROR+4" || got["msg"] != "the end" {
		t.Errorf("got %v", got)
	}
	l.Fatalf("%s", "again")
	if got := last(); got["msg"] != "again" {
		t.Errorf("got %v", got)
	}
}

func TestLevelBelowHandlerWritesNothing(t *testing.T) {
	l, last := capture(t, slog.LevelWarn, nil)
	l.Info("x")
	l.Debugf("%d", 1)
	if got := last(); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestSourceIsTheCaller(t *testing.T) {
	l, last := capture(t, slog.LevelDebug, nil)
	check := func(want int) {
		t.Helper()
		source, _ := last()["source"].(map[string]any)
		if file, _ := source["file"].(string); filepath.Base(file) != "slog_test.go" || source["line"] != float64(want) {
			t.Errorf("source is %v:%v, want slog_test.go:%d", source["file"], source["line"], want)
		}
	}
	_, _, here, _ := runtime.Caller(0)
	l.Info("print")
	check(here + 1)
	l.Infof("printf")
	check(here + 3)
	l.WithField("a", 1).WithError(errors.New("e")).Fatal("derived")
	check(here + 5)
	wrapper := l.(interface{ WithCallDepth(int) log.Logger }).WithCallDepth(1).WithField("a", 1)
	wrap := func() { wrapper.Info("wrapped") }
	wrap()
	check(here + 9)
}

// fields removes the fields that every line has, after checking them.
func fields(t *testing.T, line map[string]any) map[string]any {
	t.Helper()
	stamp, _ := line[slog.TimeKey].(string)
	if when, err := time.Parse(time.RFC3339Nano, stamp); err != nil || when.IsZero() {
		t.Errorf("time is %q", stamp)
	}
	for _, key := range []string{slog.TimeKey, slog.LevelKey, slog.MessageKey, slog.SourceKey} {
		delete(line, key)
	}
	return line
}

func TestFieldsAreAddedNotShared(t *testing.T) {
	l, last := capture(t, slog.LevelInfo, func(l *slog.Logger) *slog.Logger { return l.With("given", true) })
	one := l.WithField("pod", "p")
	two := one.WithFields(log.Fields{"node": "n", "a": 1})
	three := one.WithError(errors.New("boom"))
	for _, tt := range []struct {
		l    log.Logger
		want map[string]any
	}{
		{l, map[string]any{"given": true}},
		{one, map[string]any{"given": true, "pod": "p"}},
		{two, map[string]any{"given": true, "pod": "p", "node": "n", "a": 1.0}},
		{three, map[string]any{"given": true, "pod": "p", "err": "boom"}},
	} {
		tt.l.Info("x")
		if diff := cmp.Diff(tt.want, fields(t, last())); diff != "" {
			t.Errorf("fields (-want +got):\n%s", diff)
		}
	}
}

func TestFieldSetTwiceIsWrittenOnce(t *testing.T) {
	var buf bytes.Buffer
	l := vkslog.FromSlog(slog.New(slog.NewTextHandler(&buf, nil)))
	l.WithField("method", "outer").WithField("pod", "p").WithField("method", "inner").Info("x")
	if got := buf.String(); strings.Contains(got, "outer") || !strings.Contains(got, "method=inner") {
		t.Errorf("wrote %q, want only the last value of method", got)
	}
}

type password string

func (password) LogValue() slog.Value { return slog.StringValue("hidden") }

// TestSlogConventions checks the requirements of testing/slogtest that a logger in front of a handler can break.
func TestSlogConventions(t *testing.T) {
	l, last := capture(t, slog.LevelInfo, func(l *slog.Logger) *slog.Logger {
		return l.With("outside", 1).WithGroup("g").With("inside", 2)
	})
	l.WithField("secret", password("hunter2")).WithField("d", time.Second).Info("x")
	want := map[string]any{
		"outside": 1.0,
		"g":       map[string]any{"inside": 2.0, "secret": "hidden", "d": float64(time.Second)},
	}
	if diff := cmp.Diff(want, fields(t, last())); diff != "" {
		t.Errorf("groups, attributes and LogValuers of the given logger (-want +got):\n%s", diff)
	}
}
