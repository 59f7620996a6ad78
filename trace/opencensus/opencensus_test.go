// SPDX-License-Identifier: Apache-2.0

package opencensus_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	octrace "go.opencensus.io/trace"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/trace"
	"github.com/virtual-kubelet/virtual-kubelet/trace/opencensus"
)

// exporter keeps ended spans, by name.
type exporter struct {
	mu    sync.Mutex
	spans map[string]*octrace.SpanData // guarded by mu
}

func (e *exporter) ExportSpan(s *octrace.SpanData) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.spans[s.Name] = s
}

// sampled returns a context below a sampled span whose tracer is the adapter,
// and the spans that end during the test.
func sampled(t *testing.T) (context.Context, map[string]*octrace.SpanData) {
	t.Helper()
	e := &exporter{spans: map[string]*octrace.SpanData{}}
	octrace.RegisterExporter(e)
	t.Cleanup(func() { octrace.UnregisterExporter(e) })
	ctx, root := octrace.StartSpan(t.Context(), "root", octrace.WithSampler(octrace.AlwaysSample()))
	t.Cleanup(root.End)
	return trace.WithTracer(ctx, opencensus.Adapter{}), e.spans
}

func TestLogLinesAreAnnotationsWithLevelAndFields(t *testing.T) {
	ctx, spans := sampled(t)
	ctx, span := trace.StartSpan(ctx, "sync")
	log.G(ctx).WithField("pod", "p").Warnf("slow %d", 1)
	span.End()
	got := spans["sync"].Annotations
	want := map[string]any{"level": "warn", "method": "sync", "pod": "p"}
	if len(got) != 1 || got[0].Message != "slow 1" || !cmp.Equal(want, got[0].Attributes) {
		t.Errorf("annotations %+v, want one with %v", got, want)
	}
}

func TestStatusCodes(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code int32
	}{
		{nil, 0},
		{fmt.Errorf("get pod: %w", errdefs.NotFound("gone")), 5},
		{errdefs.InvalidInput("bad"), 3},
		{errors.New("other"), 2},
	} {
		ctx, spans := sampled(t)
		_, span := trace.StartSpan(ctx, "sync")
		span.SetStatus(tt.err)
		span.End()
		got := spans["sync"].Status
		if got.Code != tt.code || (tt.err != nil && got.Message != tt.err.Error()) {
			t.Errorf("SetStatus(%v) = %+v, want code %d", tt.err, got, tt.code)
		}
	}
}

func TestFieldsBecomeAttributes(t *testing.T) {
	ctx, spans := sampled(t)
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
	if diff := cmp.Diff(want, spans["sync"].Attributes); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
}

func TestSpansNest(t *testing.T) {
	ctx, spans := sampled(t)
	ctx, outer := trace.StartSpan(ctx, "outer")
	_, inner := trace.StartSpan(ctx, "inner")
	inner.End()
	outer.End()
	if got, want := spans["inner"].ParentSpanID, spans["outer"].SpanID; got != want {
		t.Errorf("parent of the inner span is %s, want %s", got, want)
	}
}
