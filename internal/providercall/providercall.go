// SPDX-License-Identifier: Apache-2.0

// Package providercall wraps every call of a provider with a deadline, recovery from panics, metrics, a span, and a callback for slow calls, so that
// other work can proceed.
//
// The guarantee: Do returns only when the call has returned, so two calls for one pod never overlap. A panic becomes an error of type *Panic. Errors
// of the provider are redacted.
//
// Note: a call that ignores its context is not abandoned at the deadline. Do reports it as overdue and waits for it, because otherwise calls
// could overlap.
package providercall

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/trace"
)

var (
	duration = metrics.NewHistogramVec("virtual_kubelet_provider_call_duration_seconds", "Duration of provider calls by method and result: ok, not_found, retry_after (the backend has named a time to try again at, as when it throttles) or error.", "method", "result")
	// The same metrics with the names of a kubelet. The provider corresponds to its runtime.
	runtimeCalls    = metrics.NewCounterVec("kubelet_runtime_operations_total", "Provider calls by method.", "operation_type")
	runtimeErrors   = metrics.NewCounterVec("kubelet_runtime_operations_errors_total", "Provider calls that failed, by method. That a pod is not found is no failure.", "operation_type")
	runtimeDuration = metrics.NewHistogramVec("kubelet_runtime_operations_duration_seconds", "Duration of provider calls by method.", "operation_type")

	panics  = metrics.NewCounterVec("virtual_kubelet_provider_panics_total", "Provider calls that panicked, by method.", "method")
	overdue = metrics.NewCounterVec("virtual_kubelet_provider_calls_overdue_total", "Provider calls that had not returned by their deadline, by method.", "method")
)

// Caller makes calls of providers. The zero value sets no deadline.
type Caller struct {
	// Deadline ends the context of a call; 0 means none.
	Deadline time.Duration
	// Patience determines when Slow is called; nil means never.
	Patience *Patience
	// Slow is called once for a slow call, on another goroutine, with the context of the call.
	Slow func(ctx context.Context)
}

// Panic is the error of a call after a panic.
type Panic struct {
	Method string
	Value  any
}

// Error names the method and the value. The stack is only logged.
func (p *Panic) Error() string { return fmt.Sprintf("provider panicked in %s: %v", p.Method, p.Value) }

// Caught counts and logs a recovered panic of the named method with its stack, and returns it as an error. It is for calls outside of Do, such as the
// streams of a request.
func Caught(ctx context.Context, method string, value any) *Panic {
	panics.WithLabelValues(method).Inc()
	said := redact.Text(fmt.Sprint(value), redact.From(ctx)...)
	log.G(ctx).WithField("method", method).Errorf("provider panicked: %s\n%s", said, debug.Stack())
	return &Panic{Method: method, Value: value}
}

// resultOf returns the label of an outcome. A not-found error is a normal answer of the backend, and so is an error with a retry time.
func resultOf(err error) string {
	switch _, waits := errdefs.RetryAfterOf(err); {
	case err == nil:
		return "ok"
	case errdefs.IsNotFound(err):
		return "not_found"
	case waits:
		return "retry_after"
	}
	return "error"
}

// Do runs call, the named method of the provider. A call that returns after its deadline without an error counts as successful. The text of an error
// is redacted, with the values of ctx (redact.With).
func (c *Caller) Do(ctx context.Context, method string, call func(context.Context) error) (err error) {
	ctx, span := trace.StartSpan(ctx, "provider."+method)
	defer func() {
		if !errdefs.IsNotFound(err) { // an answer
			span.SetStatus(err)
		}
		span.End()
	}()
	begin := time.Now()
	if c.Patience != nil && c.Slow != nil {
		defer time.AfterFunc(c.Patience.With(method), func() { c.Slow(ctx) }).Stop()
	}
	callCtx := ctx
	if c.Deadline > 0 {
		bounded, cancel := context.WithTimeout(ctx, c.Deadline)
		defer cancel()
		callCtx = bounded
		defer time.AfterFunc(c.Deadline, func() {
			overdue.WithLabelValues(method).Inc()
			log.G(ctx).WithField("method", method).Warnf("provider call has not returned after %v; its context is cancelled", c.Deadline)
		}).Stop()
	}
	defer func() {
		if v := recover(); v != nil {
			err = Caught(ctx, method, v)
		}
		if err != nil {
			err = redact.Error(err, redact.From(ctx)...)
		}
		result, failures := resultOf(err), runtimeErrors.WithLabelValues(method) // exported with 0 from the first call on
		runtimeCalls.WithLabelValues(method).Inc()
		runtimeDuration.WithLabelValues(method).Observe(time.Since(begin).Seconds())
		if err != nil && !errdefs.IsNotFound(err) {
			failures.Inc()
		} else if err == nil && c.Patience != nil {
			c.Patience.recordDuration(method, time.Since(begin))
		}
		duration.WithLabelValues(method, result).Observe(time.Since(begin).Seconds())
	}()
	return call(callCtx)
}
