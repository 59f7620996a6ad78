// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtual-kubelet/virtual-kubelet/internal/keyqueue"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// writeSpacing is the minimum time between writes, so that a provider that reports in a loop does not flood the API server.
	writeSpacing = 100 * time.Millisecond
)

// run starts after the first Ping has returned or timed out, so that a node that was ready before a restart does not become unready
// briefly.
func (r *nodeReconciler) run(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-r.pings.wake:
		r.takePing()
	}
	if r.ours {
		r.tellRole()
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		news := true
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			news = false
		case <-r.reports.wake:
			r.takeReport()
		case <-r.pings.wake:
			news = r.takePing()
		case <-r.observed.wake:
			r.takeObserved()
		case <-r.shutdown.wake:
			r.takeShutdown()
		case <-r.conditions.mail.wake:
			r.takeConditions()
		case <-r.holds.wake:
			r.takeHolds()
		}
		if news {
			r.gap = nil
		}
		if !r.ours {
			continue // holds receives when this process may write the node again
		}
		if r.gap == nil || !time.Now().Before(r.nextDue()) {
			keyqueue.Do(ctx, func() { r.takeTurn(ctx) })
		}
		timer.Reset(time.Until(r.nextDue()))
	}
}

// takeTurn makes the write that is due, if any.
func (r *nodeReconciler) takeTurn(ctx context.Context) {
	if !time.Now().Before(r.nextDue()) {
		r.attemptWrites(ctx)
		r.nextDue() // finds the differences
	}
}

// nextDue returns the time of the next necessary write.
func (r *nodeReconciler) nextDue() time.Time {
	at := r.nextReport()
	switch {
	case r.server == nil:
		at = time.Time{}
	case r.urgent:
		at = r.lastWrite.Add(writeSpacing)
	case r.hasDrifted():
		at = earlierOf(at, r.lastWrite.Add(min(r.pingInterval, r.statusInterval)))
	}
	if at.Before(r.retryAt) {
		return r.retryAt
	}
	return at
}

// attemptWrites makes the necessary writes, and calls the error handler if a write fails. It handles all errors.
func (r *nodeReconciler) attemptWrites(ctx context.Context) {
	defer func() { r.gap = nil }()
	asks := r.seenBefore && r.statusErrorHandler != nil
	err := r.write(ctx)
	if err != nil && asks && ctx.Err() == nil {
		if refused := askHandler(ctx, r.statusErrorHandler, err); refused != nil {
			err = refused
		} else {
			err = r.write(ctx)
		}
	}
	switch {
	case ctx.Err() != nil:
	case err == nil:
		if r.failing {
			log.G(ctx).Info("the node is up to date again")
		}
		r.failing, r.retryAt = false, time.Time{}
		r.retry.reset()
	default:
		nodeWriteFailures.Inc()
		logger := log.G(ctx).WithError(err)
		if !r.failing {
			logger.Warn("the node cannot be registered or updated, trying again")
		} else {
			logger.Debug("the node still cannot be registered or updated")
		}
		r.failing, r.urgent, r.retryAt = true, true, time.Now().Add(r.retry.next())
	}
}

// askHandler returns the result of handler for err. If the handler panics, the result is an error.
func askHandler(ctx context.Context, handler ErrorHandler, err error) (refused error) {
	defer func() {
		if r := recover(); r != nil {
			refused = fmt.Errorf("node status update error handler panicked: %v: %w", r, err)
			log.G(ctx).Errorf("the node status update error handler panicked: %v\n%s", r, debug.Stack())
		}
	}()
	return handler(ctx, err)
}

// write registers the node if the API server does not have it, and brings it up to date. Metadata and status are separate requests, so that
// a refused request does not delay the other one.
func (r *nodeReconciler) write(ctx context.Context) error {
	if r.lost && r.statusErrorHandler != nil {
		r.lost = false
		return apierrors.NewNotFound(corev1.Resource("nodes"), r.want.Name)
	}
	r.lost = false
	r.urgent = false
	if r.server == nil {
		if err := r.registerNode(ctx); err != nil {
			return err
		}
	}
	sent := r.missingPatches()
	err := r.writeNodeStatus(ctx)
	if err == nil {
		r.markReady()
	}
	if r.server != nil {
		err = errors.Join(err, r.writeNodeMetadata(ctx))
	}
	if err == nil {
		// Only a part that was sent can have been ignored; other differences come from another client.
		if r.refused = r.missingPatches(); r.refused != sent {
			r.refused = ""
		}
	}
	return err
}

func (r *nodeReconciler) markReady() {
	select {
	case <-r.ready:
	default:
		close(r.ready)
	}
}

// hasDrifted reports whether the node differs from the desired one. A part that the API server ignored in the last write (a field of a
// newer version, for example) would differ forever and does not count. hasDrifted compares only after a change: a process may run a
// thousand nodes, and most wake-ups are a Ping with the same result.
func (r *nodeReconciler) hasDrifted() bool {
	if r.gap == nil {
		difference := r.missingPatches()
		r.gap = &difference
	}
	return *r.gap != "" && *r.gap != r.refused
}
