// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
)

// maxLeaseGap is the longest allowed time without a lease renewal while the API server can be reached. On a busy
// machine only the consequence counts: the node must stay ready.
var maxLeaseGap = faultrow.Budget(20 * time.Second)

// awaitRenewal waits for a lease renewal after the given time, and returns the time when the test saw it.
func (w *world) awaitRenewal(after time.Time) time.Time {
	w.Helper()
	w.leases.awaitOne(w.T, "the lease is renewed", func(lease *coordinationv1.Lease) bool { return w.renewed(lease, after) })
	return time.Now()
}

func (w *world) renewed(lease *coordinationv1.Lease, after time.Time) bool {
	return lease.Spec.RenewTime != nil && lease.Spec.RenewTime.After(after)
}

// leaseGap returns the longest time without a renewal since the given time. It includes the time before the
// first renewal and after the last renewal.
func (w *world) leaseGap(since time.Time) (gap time.Duration) {
	last, renewal := since, time.Time{}
	for _, v := range w.leases.history(since) {
		if v.Gone || v.Of.Spec.RenewTime == nil {
			continue
		}
		if at := v.Of.Spec.RenewTime.Time; at.After(renewal) {
			renewal = at
			gap = max(gap, v.At.Sub(last))
			last = v.At
		}
	}
	return max(gap, time.Since(last))
}

// readyFlaps returns how often the node stopped being ready since the given time.
func (w *world) readyFlaps(since time.Time) (n int) {
	ready := false
	for _, v := range w.nodes.history(time.Time{}) {
		now := !v.Gone && nodeReady(v.Of)
		if ready && !now && !v.At.Before(since) {
			n++
		}
		ready = now
	}
	return n
}

func nodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
