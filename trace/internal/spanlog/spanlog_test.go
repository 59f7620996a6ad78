// SPDX-License-Identifier: Apache-2.0

package spanlog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	vkslog "github.com/virtual-kubelet/virtual-kubelet/log/slog"
	"github.com/virtual-kubelet/virtual-kubelet/trace/internal/spanlog"
)

// memory is a backend that keeps all data.
type memory struct {
	off bool

	mu    sync.Mutex
	attrs log.Fields // guarded by mu
	lines []string   // guarded by mu
}

func (m *memory) Recording() bool { return !m.off }

func (m *memory) SetFields(fields log.Fields) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.attrs == nil {
		m.attrs = log.Fields{}
	}
	maps.Copy(m.attrs, fields)
}

func (m *memory) Annotate(level, message string, fields log.Fields) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lines = append(m.lines, fmt.Sprint(level, " ", message, " ", fields))
}

// jsonContext returns a context whose logger writes JSON to the buffer.
func jsonContext(t *testing.T) (context.Context, *bytes.Buffer) {
	var buf bytes.Buffer
	handler := slog.NewJSONHandler(&buf, &slog.HandlerOptions{AddSource: true, Level: slog.LevelDebug})
	return log.WithLogger(t.Context(), vkslog.FromSlog(slog.New(handler))), &buf
}

func TestLinesAreRecordedWithLevelAndFields(t *testing.T) {
	ctx, buf := jsonContext(t)
	m := &memory{}
	l := spanlog.Start(ctx, "sync", m).Logger().WithField("pod", "p")
	l.Debug("a", 1)
	l.Debugf("a %d", 1)
	l.Info("b")
	l.Infof("b %d", 2)
	l.Warn(errors.New("c"))
	l.Warnf("c %d", 3)
	l.Error("d")
	l.Errorf("d %d", 4)
	l.Fatal("e")
	l.WithError(errors.New("boom")).Fatalf("e %d", 5)
	var want []string
	for i, line := range []string{"debug a1", "debug a 1", "info b", "info b 2", "warn c", "warn c 3", "error d", "error d 4", "fatal e", "fatal e 5"} {
		fields := " map[method:sync pod:p]"
		if i == 9 {
			fields = " map[err:boom method:sync pod:p]"
		}
		want = append(want, line+fields)
	}
	if diff := cmp.Diff(want, m.lines); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	if got := strings.Count(buf.String(), "\n"); got != len(want) {
		t.Errorf("the sink got %d lines, want %d", got, len(want))
	}
}

func TestInnerSpanRecordsOnceAndKeepsFields(t *testing.T) {
	ctx, buf := jsonContext(t)
	outer, inner := &memory{}, &memory{}
	o := spanlog.Start(ctx, "outer", outer)
	ctx = o.WithField(log.WithLogger(ctx, o.Logger()), "pod", "p")
	spanlog.Start(ctx, "inner", inner).Logger().Info("x")
	if len(outer.lines) != 0 {
		t.Errorf("the outer span recorded %q", outer.lines)
	}
	if diff := cmp.Diff([]string{"info x map[method:inner pod:p]"}, inner.lines); diff != "" {
		t.Errorf("the inner span recorded (-want +got):\n%s", diff)
	}
	if got := buf.String(); strings.Count(got, `"method"`) != 1 || !strings.Contains(got, `"method":"inner"`) {
		t.Errorf("the sink got %q, want one method", got)
	}
}

func TestWithFieldsReachesSpanContextAndLogger(t *testing.T) {
	ctx, buf := jsonContext(t)
	m := &memory{}
	s := spanlog.Start(ctx, "sync", m)
	ctx = log.WithLogger(ctx, s.Logger().WithField("between", 1))
	ctx = s.WithFields(ctx, log.Fields{"pod": "p"})
	if diff := cmp.Diff(log.Fields{"pod": "p"}, m.attrs); diff != "" {
		t.Errorf("attributes of the span (-want +got):\n%s", diff)
	}
	log.G(ctx).Info("x")
	s.Logger().Info("y")
	want := []string{"info x map[between:1 method:sync pod:p]", "info y map[method:sync pod:p]"}
	if diff := cmp.Diff(want, m.lines); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	if got := strings.Count(buf.String(), `"pod":"p"`); got != 2 {
		t.Errorf("%d lines of the sink have the field, want 2", got)
	}
}

func TestNothingIsRecordedInAnUnsampledSpan(t *testing.T) {
	ctx, buf := jsonContext(t)
	m := &memory{off: true}
	s := spanlog.Start(ctx, "sync", m)
	log.G(s.WithField(ctx, "pod", "p")).Info("x")
	s.Logger().Errorf("y")
	if len(m.lines) != 0 || len(m.attrs) != 0 {
		t.Errorf("recorded %v %v", m.lines, m.attrs)
	}
	if got := strings.Count(buf.String(), `"pod":"p"`); got != 2 {
		t.Errorf("%d lines of the sink have the field, want 2", got)
	}
}

func TestSourceIsTheCallerThroughASpan(t *testing.T) {
	ctx, buf := jsonContext(t)
	l := spanlog.Start(ctx, "sync", &memory{}).Logger().WithError(errors.New("e")).WithField("a", 1)
	_, _, here, _ := runtime.Caller(0)
	l.Info("x")
	l.Infof("x")
	decoder := json.NewDecoder(buf)
	for want := here + 1; want <= here+2; want++ {
		var line struct {
			Source struct {
				File string
				Line int
			}
		}
		if err := decoder.Decode(&line); err != nil {
			t.Fatal(err)
		}
		if filepath.Base(line.Source.File) != "spanlog_test.go" || line.Source.Line != want {
			t.Errorf("source is %s:%d, want spanlog_test.go:%d", line.Source.File, line.Source.Line, want)
		}
	}
}

func TestSpanIsSafeForConcurrentUse(t *testing.T) {
	ctx, _ := jsonContext(t)
	m := &memory{}
	s := spanlog.Start(ctx, "sync", m)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			log.G(s.WithField(ctx, fmt.Sprint("k", i), i)).Info("x")
			s.Logger().Info("y")
		})
	}
	wg.Wait()
	if len(m.attrs) != 8 || len(m.lines) != 8 {
		t.Errorf("%d attributes and %d lines, want 8 of each", len(m.attrs), len(m.lines))
	}
}
