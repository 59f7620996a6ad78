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
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// reportEvery is how old the last report of an unchanged node may be when
	// a lease says that the daemon lives. A kubelet does the same.
	reportEvery = 5 * time.Minute
	// writeSpacing keeps a provider that reports in a loop from flooding the API server.
	writeSpacing = 100 * time.Millisecond

	reconcilerFirstRetry = 200 * time.Millisecond
	// reconcilerMaxRetry is short: the node must be back soon after the API server is.
	reconcilerMaxRetry = 4 * time.Second
)

// nodeReconciler owns what we want the node to be, and what the API server was last
// seen to hold, and makes the second like the first. Only its goroutine writes
// the node; everything else leaves a note in one of its mailboxes.
type nodeReconciler struct {
	c *NodeController

	// Mailboxes, safe for concurrent use.
	reports  *latest[*corev1.Node]
	pings    *latest[pingResult]
	observed *latest[observedNode]
	owners   *latest[types.UID]
	holds    *latest[bool] // whether the node is this process's to write

	registered chan struct{} // closed when the node exists

	// Owned by run.
	held        bool
	want        *corev1.Node
	ping        pingResult
	pingChanged time.Time
	down        bool // the node shuts down
	shown       []corev1.NodeCondition
	server      *corev1.Node // nil when it is not there, or not known
	seenBefore  bool         // the node was registered at least once
	lost        bool         // its deletion was seen and not yet told
	urgent      bool
	gap         *string // what difference said, nil when something has changed since
	mode        int     // of writing metadata, see metadataModes
	refused     string  // what the API server does not take, see drifted
	forbidden   string  // the metadata patch that no mode may send
	forbiddenAt time.Time
	retry       retryPause
	retryAt     time.Time
	lastWrite   time.Time
	lastReport  time.Time
	failing     bool
}

func newNodeReconciler(c *NodeController) *nodeReconciler {
	return &nodeReconciler{
		c:          c,
		reports:    newLatest[*corev1.Node](),
		pings:      newLatest[pingResult](),
		observed:   newLatest[observedNode](),
		owners:     newLatest[types.UID](),
		holds:      newLatest[bool](),
		held:       c.lease == nil || c.lease.guard == nil,
		registered: make(chan struct{}),
		want:       c.node.DeepCopy(),
		retry:      retryPause{first: reconcilerFirstRetry, max: reconcilerMaxRetry},
	}
}

func (k *nodeReconciler) waitRegistered(ctx context.Context) bool {
	select {
	case <-k.registered:
		return true
	case <-ctx.Done():
		return false
	}
}

// run begins when the first Ping was answered or timed out: a node that was
// ready before a restart must not be unready for a moment after it.
func (k *nodeReconciler) run(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-k.pings.wake:
		k.takePing()
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
		case <-k.reports.wake:
			k.takeReport()
		case <-k.pings.wake:
			news = k.takePing()
		case <-k.observed.wake:
			k.takeObserved()
		case <-k.c.shutdown.wake:
			k.takeShutdown()
		case <-k.c.conditions.mail.wake:
			k.takeConditions()
		case <-k.holds.wake:
			k.takeHolds()
		}
		if news {
			k.gap = nil
		}
		if !k.held {
			continue // that it is ours again comes as a message
		}
		if !time.Now().Before(k.due()) {
			k.attempt(ctx)
		}
		timer.Reset(time.Until(k.due()))
	}
}

// nextReport returns when the node must be reported although nothing changed.
func (k *nodeReconciler) nextReport() time.Time {
	if k.c.lease == nil {
		return k.lastReport.Add(k.c.pingInterval)
	}
	return k.lastReport.Add(max(reportEvery, k.c.statusInterval))
}

// due returns when something must be written next.
func (k *nodeReconciler) due() time.Time {
	at := k.nextReport()
	switch {
	case k.server == nil:
		at = time.Time{}
	case k.urgent:
		at = k.lastWrite.Add(writeSpacing)
	case k.drifted():
		at = earlier(at, k.lastWrite.Add(min(k.c.pingInterval, k.c.statusInterval)))
	}
	if at.Before(k.retryAt) {
		return k.retryAt
	}
	return at
}

// attempt writes what has to be written, and asks the error handler when that
// does not work. Errors end here.
func (k *nodeReconciler) attempt(ctx context.Context) {
	defer func() { k.gap = nil }()
	known := k.seenBefore
	err := k.write(ctx)
	if handler := k.c.statusErrorHandler; err != nil && known && handler != nil && ctx.Err() == nil {
		if refused := askHandler(ctx, handler, err); refused != nil {
			err = refused
		} else {
			err = k.write(ctx)
		}
	}
	switch {
	case ctx.Err() != nil:
	case err == nil:
		if k.failing {
			log.G(ctx).Info("the node is up to date again")
		}
		k.failing, k.retryAt = false, time.Time{}
		k.retry.reset()
	default:
		nodeWriteFailures.Inc()
		logger := log.G(ctx).WithError(err)
		if !k.failing {
			logger.Warn("the node cannot be registered or updated, trying again")
		} else {
			logger.Debug("the node still cannot be registered or updated")
		}
		k.failing, k.urgent, k.retryAt = true, true, time.Now().Add(k.retry.next())
	}
}

// askHandler returns what handler makes of err. A panic is a refusal.
func askHandler(ctx context.Context, handler ErrorHandler, err error) (refused error) {
	defer func() {
		if r := recover(); r != nil {
			refused = fmt.Errorf("node status update error handler panicked: %v: %w", r, err)
			log.G(ctx).Errorf("the node status update error handler panicked: %v\n%s", r, debug.Stack())
		}
	}()
	return handler(ctx, err)
}

// write registers the node if it is not there and brings it up to date.
// Metadata and status are separate requests, so that one that is refused does
// not hold up the other.
func (k *nodeReconciler) write(ctx context.Context) error {
	if k.lost && k.c.statusErrorHandler != nil {
		k.lost = false
		return apierrors.NewNotFound(corev1.Resource("nodes"), k.want.Name)
	}
	k.lost = false
	k.urgent = false
	if k.server == nil {
		if err := k.register(ctx); err != nil {
			return err
		}
	}
	sent := k.difference()
	err := k.writeStatus(ctx)
	if err == nil {
		k.markReady()
	}
	if k.server != nil {
		err = errors.Join(err, k.writeMetadata(ctx))
	}
	if err == nil {
		// What was not sent was not refused: somebody else wrote it meanwhile.
		if k.refused = k.difference(); k.refused != sent {
			k.refused = ""
		}
	}
	return err
}

func (k *nodeReconciler) markReady() {
	select {
	case <-k.c.ready:
	default:
		close(k.c.ready)
	}
}

// drifted reports whether the node is not what it should be. What the API server
// did not take the last time, a field of a newer version for example, would
// differ for ever and does not count. It compares only after news, because a
// process may keep a thousand nodes and most of what wakes their reconcilers is a Ping like the last.
func (k *nodeReconciler) drifted() bool {
	if k.gap == nil {
		difference := k.difference()
		k.gap = &difference
	}
	return *k.gap != "" && *k.gap != k.refused
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
