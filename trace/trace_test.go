// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	vklogrus "github.com/virtual-kubelet/virtual-kubelet/log/logrus"
	"github.com/virtual-kubelet/virtual-kubelet/trace"
)

func TestFieldsAreKeptWithoutTracer(t *testing.T) {
	logger, hook := test.NewNullLogger()
	ctx := log.WithLogger(t.Context(), vklogrus.FromLogrus(logger.WithField("given", 1)))
	ctx, span := trace.StartSpan(ctx, "sync")
	ctx = span.WithField(ctx, "pod", "p")
	ctx = span.WithFields(ctx, log.Fields{"node": "n"})
	span.SetStatus(errors.New("boom"))
	span.End()
	log.G(ctx).Info("x")
	want := map[string]any{"given": 1, "pod": "p", "node": "n"}
	if diff := cmp.Diff(want, map[string]any(hook.LastEntry().Data)); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

// recorder records the names of the spans that it opens.
type recorder struct {
	names  *[]string
	logger log.Logger
}

func (r recorder) StartSpan(ctx context.Context, name string) (context.Context, trace.Span) {
	*r.names = append(*r.names, name)
	return ctx, recorded{logger: r.logger}
}

type recorded struct {
	trace.Span
	logger log.Logger
}

func (r recorded) Logger() log.Logger { return r.logger }

func setDefault(t *testing.T, tracer trace.Tracer) {
	t.Helper()
	old := trace.T
	trace.T = tracer
	t.Cleanup(func() { trace.T = old })
}

func TestTracerInContextWins(t *testing.T) {
	var fromDefault, fromContext []string
	setDefault(t, recorder{names: &fromDefault})
	trace.StartSpan(t.Context(), "one")
	trace.StartSpan(trace.WithTracer(t.Context(), recorder{names: &fromContext}), "two")
	trace.StartSpan(trace.WithTracer(t.Context(), nil), "three")
	if diff := cmp.Diff([]string{"one", "three"}, fromDefault); diff != "" {
		t.Errorf("spans of T (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"two"}, fromContext); diff != "" {
		t.Errorf("spans of the context's tracer (-want +got):\n%s", diff)
	}
}

func TestStartSpanPutsItsLoggerInTheContext(t *testing.T) {
	logger, _ := test.NewNullLogger()
	want := vklogrus.FromLogrus(logger.WithField("span", 1))
	ctx := trace.WithTracer(t.Context(), recorder{names: new([]string), logger: want})
	ctx, _ = trace.StartSpan(ctx, "x")
	if got := log.G(ctx); got != want {
		t.Errorf("logger of the context is %v, want the span's", got)
	}
}

func TestSpanWithoutLoggerKeepsTheContexts(t *testing.T) {
	logger, _ := test.NewNullLogger()
	want := vklogrus.FromLogrus(logger.WithField("before", 1))
	ctx, span := trace.StartSpan(log.WithLogger(t.Context(), want), "x")
	if span.Logger() != nil {
		t.Errorf("the default span has the logger %v", span.Logger())
	}
	if got := log.G(ctx); got != want {
		t.Errorf("logger of the context is %v, want the one of before", got)
	}
}
