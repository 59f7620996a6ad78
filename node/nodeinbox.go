// SPDX-License-Identifier: Apache-2.0

package node

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// report takes over what a provider says about its node.
func (r *nodeReconciler) report(node *corev1.Node) {
	if node == nil {
		return
	}
	said := &corev1.Node{}
	node.Status.DeepCopyInto(&said.Status)
	said.Labels = maps.Clone(node.Labels)
	said.Annotations = maps.Clone(node.Annotations)
	r.reports.put(said)
}

func (r *nodeReconciler) takeReport() {
	if said, ok := r.reports.take(); ok {
		r.want.Status, r.want.Labels, r.want.Annotations = said.Status, said.Labels, said.Annotations
		r.urgent = true
	}
}

// takePing ignores a new text for the same kind of failure for a while: a text
// with a time or a number in it would be written at every Ping. It returns whether
// the node may have to be written.
func (r *nodeReconciler) takePing() bool {
	result, ok := r.pings.take()
	if !ok {
		return false
	}
	same := result.reason == r.ping.reason
	if same && (result.ok() || time.Since(r.pingChanged) < r.c.statusInterval) {
		return false
	}
	r.ping, r.pingChanged = result, time.Now()
	r.urgent = r.urgent || !same
	return true
}

// takeHolds looks at everything anew when the node has become ours to write.
func (r *nodeReconciler) takeHolds() {
	if held, ok := r.holds.take(); ok {
		if held && !r.held {
			r.urgent, r.lastReport = true, time.Time{}
		}
		r.held = held
	}
}

func (r *nodeReconciler) takeObserved() {
	seen, ok := r.observed.take()
	switch {
	case !ok || r.server == nil:
	case seen.node != nil:
		if seen.node.UID != r.server.UID {
			r.urgent, r.lastReport = true, time.Time{}
		}
		r.observe(seen.node)
	case seen.uid == "" || seen.uid == r.server.UID:
		// Else it is old news: the deletion of a node that was already replaced.
		r.server, r.lost = nil, true
	}
}

// observe takes node for what the API server holds.
func (r *nodeReconciler) observe(node *corev1.Node) {
	if r.server == nil || r.server.UID != node.UID || !r.seenBefore {
		r.owners.put(node.UID)
	}
	r.server = node
	if !r.seenBefore {
		r.seenBefore = true
		close(r.registered)
	}
}
