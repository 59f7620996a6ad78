// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/providercall"
	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// Reasons of the Ready condition while the provider does not answer.
const (
	reasonPingFailed  = "ProviderPingFailed"
	reasonPingTimeout = "ProviderPingTimeout"
)

// pingStopGrace is the time that a stop waits for a Ping that ignores its context.
const pingStopGrace = 2 * time.Second

// errPingTimeout is the outcome of a Ping that did not return in time.
var errPingTimeout = errors.New("ping timed out")

// pingResult is the outcome of one Ping. The zero value is a successful Ping.
type pingResult struct {
	reason string // empty after a successful Ping
	err    error
}

func (r pingResult) ok() bool { return r.err == nil }

// ProviderHealth is the result of the last Ping.
type ProviderHealth struct {
	// Message is the error, or "" if the provider is healthy.
	Message string `json:"message,omitempty"`
	// Since is the time of the first of the consecutive Pings with this result.
	Since time.Time `json:"since"`
}

// pingRecord has the result of the last Ping. Only pinger writes it.
type pingRecord struct {
	last atomic.Pointer[ProviderHealth] // nil before the first Ping
}

func (p *pingRecord) recordResult(r pingResult) {
	h := &ProviderHealth{Since: time.Now()}
	if !r.ok() {
		h.Message = r.err.Error()
	}
	if last := p.last.Load(); last != nil && (last.Message == "") == r.ok() {
		h.Since = last.Since
	}
	p.last.Store(h)
}

// pinger calls Ping of the provider at a fixed interval. There is never more than one Ping at a time: a hanging Ping is reported as timed
// out, and pinger waits for its end.
type pinger struct {
	provider  NodeProvider
	interval  time.Duration
	timeout   time.Duration
	recovered []func()
	results   *latest[pingResult]
	record    *pingRecord

	failing bool // owned by run
}

func (p *pinger) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		start := time.Now()
		p.pingOnce(ctx)
		timer.Reset(p.interval - time.Since(start))
	}
}

// pingOnce makes one call and returns when the call has ended, which may be long after it was reported as timed out.
func (p *pinger) pingOnce(ctx context.Context) {
	callCtx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	done := make(chan pingResult, 1)
	go func() { done <- p.callPing(callCtx) }()

	select {
	case result := <-done:
		switch {
		case ctx.Err() != nil:
		case !result.ok() && callCtx.Err() != nil:
			p.reportTimeout(ctx)
		default:
			p.reportResult(ctx, result)
		}
		return
	case <-callCtx.Done():
	}

	if ctx.Err() == nil {
		p.reportTimeout(ctx)
		select {
		case <-done:
			return
		case <-ctx.Done():
		}
	}
	grace := time.NewTimer(pingStopGrace)
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C:
		log.G(ctx).Warn("the provider's Ping ignores the end of its context; stopping without it")
	}
}

// callPing runs Ping. A panic is a failure. The call has no trace span, because Pings repeat for as long as the node runs.
func (p *pinger) callPing(ctx context.Context) (result pingResult) {
	defer func() {
		if r := recover(); r != nil {
			result = pingResult{reason: reasonPingFailed, err: providercall.Caught(ctx, "Ping", r)}
		}
	}()
	if err := p.provider.Ping(ctx); err != nil {
		return pingResult{reason: reasonPingFailed, err: redact.Error(err)}
	}
	return pingResult{}
}

func (p *pinger) reportTimeout(ctx context.Context) {
	p.reportResult(ctx, pingResult{reason: reasonPingTimeout, err: fmt.Errorf("%w after %s", errPingTimeout, p.timeout)})
}

func (p *pinger) reportResult(ctx context.Context, r pingResult) {
	p.results.put(r)
	p.record.recordResult(r)
	switch {
	case !r.ok() && !p.failing:
		log.G(ctx).WithError(r.err).Warn("the provider is not healthy: the node is not ready until a Ping succeeds")
	case r.ok() && p.failing:
		log.G(ctx).Info("the provider is healthy again")
		for _, hook := range p.recovered {
			hook()
		}
	}
	if !r.ok() {
		pingFailures.Inc()
	}
	p.failing = !r.ok()
}
