// SPDX-License-Identifier: Apache-2.0

package node

import corev1 "k8s.io/api/core/v1"

// ShutDown makes the node NotReady for as long as Run goes on, as a kubelet does
// when its machine shuts down, so that no more pods come. It does not wait for
// the API server, and may be called at any time, more than once.
func (n *NodeController) ShutDown() { n.shutdown.put(struct{}{}) }

// takeShutdown notes that the node shuts down.
func (r *nodeReconciler) takeShutdown() {
	if _, ok := r.c.shutdown.take(); ok && !r.down {
		r.down, r.urgent = true, true
	}
}

// downCondition is Ready of a node that shuts down, in the words of a kubelet.
func downCondition() corev1.NodeCondition {
	return corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionFalse,
		Reason: "KubeletNotReady", Message: "node is shutting down",
	}
}
