// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestDrain takes a node out of service as its administrators do, with a restart of the daemon meanwhile.
func TestDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	daemon := w.start()
	w.createMany("pod", 5)
	w.awaitRunning(5)
	if _, stderr, err := w.api.Kubectl(t, "drain", w.nodeName, "--force"); err != nil {
		t.Fatalf("kubectl drain: %v: %s", err, stderr)
	}
	w.awaitNoPods()
	w.awaitEmptyBackend()
	daemon.stop()
	w.start()
	w.awaitNode("is ready and still out of service", func(node *corev1.Node) bool {
		return nodeReady(node) && node.Spec.Unschedulable
	})
	if _, stderr, err := w.api.Kubectl(t, "uncordon", w.nodeName); err != nil {
		t.Fatalf("kubectl uncordon: %v: %s", err, stderr)
	}
	w.awaitNode("is in service", func(node *corev1.Node) bool { return !node.Spec.Unschedulable })
	w.startPod(w.pod("again"))
}
