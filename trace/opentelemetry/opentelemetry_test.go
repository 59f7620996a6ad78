// SPDX-License-Identifier: Apache-2.0

package opentelemetry_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/trace"
	"github.com/virtual-kubelet/virtual-kubelet/trace/opentelemetry"
)

// record sets a global tracer provider that keeps its spans, and returns a context whose tracer is the adapter.
func record(t *testing.T) (context.Context, *tracetest.SpanRecorder) {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	old := otel.GetTracerProvider()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)))
	t.Cleanup(func() { otel.SetTracerProvider(old) })
	return trace.WithTracer(t.Context(), opentelemetry.Adapter{}), recorder
}

// only returns the only ended span.
func only(t *testing.T, r *tracetest.SpanRecorder) sdktrace.ReadOnlySpan {
	t.Helper()
	if got := len(r.Ended()); got != 1 {
		t.Fatalf("%d spans ended, want 1", got)
	}
	return r.Ended()[0]
}

func values(attrs []attribute.KeyValue) map[string]any {
	m := map[string]any{}
	for _, a := range attrs {
		m[string(a.Key)] = a.Value.AsInterface()
	}
	return m
}

func TestEventsHaveLevelAndLoggerFields(t *testing.T) {
	ctx, recorder := record(t)
	ctx, span := trace.StartSpan(ctx, "sync")
	ctx = span.WithField(ctx, "pod", "p")
	log.G(ctx).WithError(errors.New("boom")).Errorf("create %d", 1)
	span.End()
	events := only(t, recorder).Events()
	want := map[string]any{"level": "error", "method": "sync", "pod": "p", "err": "boom"}
	if len(events) != 1 || events[0].Name != "create 1" {
		t.Fatalf("events %+v, want one", events)
	}
	if diff := cmp.Diff(want, values(events[0].Attributes)); diff != "" {
		t.Errorf("attributes of the event (-want +got):\n%s", diff)
	}
}

func TestOneTracerName(t *testing.T) {
	ctx, recorder := record(t)
	for _, name := range []string{"a", "b"} {
		_, span := trace.StartSpan(ctx, name)
		span.End()
	}
	for _, s := range recorder.Ended() {
		if got := s.InstrumentationScope().Name; got != "github.com/virtual-kubelet/virtual-kubelet" {
			t.Errorf("tracer of span %s is named %q", s.Name(), got)
		}
	}
}

func TestStatus(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code codes.Code
		kind any
	}{
		{nil, codes.Ok, nil},
		{fmt.Errorf("get pod: %w", errdefs.NotFound("gone")), codes.Error, "NotFound"},
		{errdefs.InvalidInput("bad"), codes.Error, "InvalidInput"},
		{errors.New("other"), codes.Error, "Unknown"},
	} {
		ctx, recorder := record(t)
		_, span := trace.StartSpan(ctx, "sync")
		span.SetStatus(tt.err)
		span.End()
		got := only(t, recorder)
		if got.Status().Code != tt.code || values(got.Attributes())["error.type"] != tt.kind {
			t.Errorf("SetStatus(%v): %+v, %v", tt.err, got.Status(), got.Attributes())
		}
		if tt.err != nil && got.Status().Description != tt.err.Error() {
			t.Errorf("description %q, want %q", got.Status().Description, tt.err)
		}
	}
}

func TestFieldsBecomeAttributes(t *testing.T) {
	ctx, recorder := record(t)
	ctx, span := trace.StartSpan(ctx, "sync")
	span.WithFields(ctx, log.Fields{
		"string": "s", "bool": true, "int": -1, "int32": int32(2), "uint": uint16(3), "float": 0.5,
		"huge": uint64(math.MaxUint64), "nil": nil, "error": errors.New("e"), "duration": time.Second,
		"slice": []int{1}, "nil stringer": (*time.Location)(nil),
	})
	span.End()
	want := map[string]any{
		"string": "s", "bool": true, "int": int64(-1), "int32": int64(2), "uint": int64(3), "float": 0.5,
		"huge": "18446744073709551615", "nil": "<nil>", "error": "e", "duration": "1s",
		"slice": "[1]", "nil stringer": "UTC",
	}
	if diff := cmp.Diff(want, values(only(t, recorder).Attributes())); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
}

func TestSpansNest(t *testing.T) {
	ctx, recorder := record(t)
	ctx, outer := trace.StartSpan(ctx, "outer")
	_, inner := trace.StartSpan(ctx, "inner")
	inner.End()
	outer.End()
	ended := recorder.Ended()
	if got, want := ended[0].Parent().SpanID(), ended[1].SpanContext().SpanID(); got != want {
		t.Errorf("parent of the inner span is %s, want %s", got, want)
	}
}
