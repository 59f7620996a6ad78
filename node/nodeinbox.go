// SPDX-License-Identifier: Apache-2.0

package node

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// report takes over what a provider says about its node.
func (k *nodeReconciler) report(node *corev1.Node) {
	if node == nil {
		return
	}
	said := &corev1.Node{}
	node.Status.DeepCopyInto(&said.Status)
	said.Labels = maps.Clone(node.Labels)
	said.Annotations = maps.Clone(node.Annotations)
	k.reports.put(said)
}

func (k *nodeReconciler) takeReport() {
	if said, ok := k.reports.take(); ok {
		k.want.Status, k.want.Labels, k.want.Annotations = said.Status, said.Labels, said.Annotations
		k.urgent = true
	}
}

// takePing ignores a new text for the same kind of failure for a while: a text
// with a time or a number in it would be written at every Ping. It returns whether
// the node may have to be written.
func (k *nodeReconciler) takePing() bool {
	result, ok := k.pings.take()
	if !ok {
		return false
	}
	same := result.reason == k.ping.reason
	if same && (result.ok() || time.Since(k.pingChanged) < k.c.statusInterval) {
		return false
	}
	k.ping, k.pingChanged = result, time.Now()
	k.urgent = k.urgent || !same
	return true
}

// takeHolds looks at everything anew when the node has become ours to write.
func (k *nodeReconciler) takeHolds() {
	if held, ok := k.holds.take(); ok {
		if held && !k.held {
			k.urgent, k.lastReport = true, time.Time{}
		}
		k.held = held
	}
}

func (k *nodeReconciler) takeObserved() {
	seen, ok := k.observed.take()
	switch {
	case !ok || k.server == nil:
	case seen.node != nil:
		if seen.node.UID != k.server.UID {
			k.urgent, k.lastReport = true, time.Time{}
		}
		k.observe(seen.node)
	case seen.uid == "" || seen.uid == k.server.UID:
		// Else it is old news: the deletion of a node that was already replaced.
		k.server, k.lost = nil, true
	}
}

// observe takes node for what the API server holds.
func (k *nodeReconciler) observe(node *corev1.Node) {
	if k.server == nil || k.server.UID != node.UID || !k.seenBefore {
		k.owners.put(node.UID)
	}
	k.server = node
	if !k.seenBefore {
		k.seenBefore = true
		close(k.registered)
	}
}
