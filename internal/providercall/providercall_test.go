// SPDX-License-Identifier: Apache-2.0

package providercall

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/trace"
)

func TestPanicBecomesAnError(t *testing.T) {
	c := &Caller{}
	err := c.Do(t.Context(), "CreatePod", func(context.Context) error { panic("boom") })
	var p *Panic
	if !errors.As(err, &p) || p.Method != "CreatePod" || p.Value != "boom" {
		t.Errorf("got %v, want a Panic in CreatePod with value boom", err)
	}
}

func TestDeadlineCancelsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Caller{Deadline: time.Minute}
		begin := time.Now()
		err := c.Do(t.Context(), "CreatePod", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Minute {
			t.Errorf("got %v after %v, want deadline exceeded after 1m", err, time.Since(begin))
		}
	})
}

func TestCallIsWaitedForBeyondItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Caller{Deadline: time.Minute}
		begin := time.Now()
		err := c.Do(t.Context(), "CreatePod", func(context.Context) error { time.Sleep(time.Hour); return nil })
		if err != nil || time.Since(begin) != time.Hour {
			t.Errorf("got %v after %v, want nil after 1h", err, time.Since(begin))
		}
	})
}

func TestSlowCallIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int32
		c := &Caller{Patience: &Patience{}, Slow: func(context.Context) { told.Add(1) }}
		_ = c.Do(t.Context(), "GetPod", func(context.Context) error { return nil })
		if told.Load() != 0 {
			t.Error("a quick call was told to be slow")
		}
		_ = c.Do(t.Context(), "GetPod", func(context.Context) error { time.Sleep(time.Minute); return nil })
		if told.Load() != 1 {
			t.Errorf("a slow call was told %d times, want once", told.Load())
		}
	})
}

// TestNotFoundIsNoError: in metrics and spans, NotFound is not an error. RetryAfter has a separate result.
func TestNotFoundIsNoError(t *testing.T) {
	for want, err := range map[string]error{
		"ok":          nil,
		"not_found":   errdefs.NotFound("no pod"),
		"retry_after": errdefs.RetryAfter(errors.New("429"), time.Second),
		"error":       errors.New("broken"),
	} {
		method := "Test" + want
		c := &Caller{}
		tracer := &statusTracer{}
		_ = c.Do(trace.WithTracer(t.Context(), tracer), method, func(context.Context) error { return err })
		families, gatherErr := metrics.Registry.Gather()
		if gatherErr != nil {
			t.Fatal(gatherErr)
		}
		failures, results := -1.0, []string{}
		for _, f := range families {
			for _, m := range f.Metric {
				labels := map[string]string{}
				for _, l := range m.Label {
					labels[l.GetName()] = l.GetValue()
				}
				switch {
				case f.GetName() == "virtual_kubelet_provider_call_duration_seconds" && labels["method"] == method:
					results = append(results, labels["result"])
				case f.GetName() == "kubelet_runtime_operations_errors_total" && labels["operation_type"] == method:
					failures = m.GetCounter().GetValue()
				}
			}
		}
		failed := err != nil && want != "not_found"
		if len(results) != 1 || results[0] != want || failures != metrics.Bool(failed) || (tracer.err != nil) != failed {
			t.Errorf("%v: the result is %v, %v failures, and the span has %v; want %s", err, results, failures, tracer.err, want)
		}
	}
}

// statusTracer keeps the status of the last span.
type statusTracer struct {
	trace.Tracer
	err error
}

func (s *statusTracer) StartSpan(ctx context.Context, _ string) (context.Context, trace.Span) {
	return ctx, statusSpan{nil, s}
}

type statusSpan struct {
	trace.Span
	of *statusTracer
}

func (statusSpan) End()                  {}
func (statusSpan) Logger() log.Logger    { return nil }
func (s statusSpan) SetStatus(err error) { s.of.err = err }
