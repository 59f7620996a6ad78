// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"context"
	"io"
	stdslog "log/slog"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/log/slog"
	"github.com/virtual-kubelet/virtual-kubelet/trace"
)

// BenchmarkSpanWithoutTracer measures the cost of a span without a tracer and a logger.
func BenchmarkSpanWithoutTracer(b *testing.B) {
	logger := slog.FromSlog(stdslog.New(stdslog.NewTextHandler(io.Discard, nil)))
	ctx := log.WithLogger(context.Background(), logger.WithField("node", "n"))
	b.ReportAllocs()
	for b.Loop() {
		ctx, span := trace.StartSpan(ctx, "syncPod")
		_ = span.WithField(ctx, "pod", "default/pod-1")
		span.SetStatus(nil)
		span.End()
	}
}

func TestSpanWithoutTracerIsCheap(t *testing.T) {
	logger := slog.FromSlog(stdslog.New(stdslog.NewTextHandler(io.Discard, nil)))
	ctx := log.WithLogger(t.Context(), logger)
	got := testing.AllocsPerRun(100, func() {
		_, span := trace.StartSpan(ctx, "syncPod")
		span.End()
	})
	if got != 0 {
		t.Errorf("a span that nobody records allocates %v times, want never", got)
	}
	got = testing.AllocsPerRun(100, func() {
		ctx, span := trace.StartSpan(ctx, "syncPod")
		_ = span.WithField(ctx, "pod", "default/pod-1")
	})
	if got > 4 {
		t.Errorf("a field that nobody reads allocates %v times, want 4 at most", got)
	}
}
