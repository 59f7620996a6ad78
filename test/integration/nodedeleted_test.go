// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
)

// registerAgain is the longest time that a deleted node may be missing.
const registerAgain = 10 * time.Second

func TestNodeIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	names := w.createMany("pod", 5)
	before := w.awaitRunning(len(names))
	old := w.awaitNode("is ready", nodeReady)
	w.awaitLease("is owned by the node", ownedBy(old))

	began := time.Now()
	if _, stderr, err := w.api.Kubectl(t, "delete", "node", w.nodeName); err != nil {
		t.Fatalf("kubectl delete node: %v: %s", err, stderr)
	}
	again := w.awaitNode("is registered again", func(node *corev1.Node) bool { return node.UID != old.UID })
	if took := time.Since(began); took > registerAgain {
		t.Errorf("it took %v to register the node again, want at most %v", took, registerAgain)
	}
	w.awaitNode("is ready again", func(node *corev1.Node) bool { return node.UID == again.UID && nodeReady(node) })
	w.awaitLease("is owned by the new node", ownedBy(again))

	after := map[string]*corev1.Pod{}
	for _, pod := range w.awaitRunning(len(names)) {
		after[pod.Name] = pod
	}
	for _, pod := range before {
		if now := after[pod.Name]; now == nil || now.UID != pod.UID {
			t.Errorf("pod %s was replaced", pod.Name)
		}
		if n := w.backend.Count("delete " + w.key(pod.Name)); n > 0 {
			t.Errorf("DeletePod was called %d times for pod %s", n, pod.Name)
		}
	}
	w.createdOnce(names)
}

func (w *world) awaitNode(what string, done func(*corev1.Node) bool) *corev1.Node {
	w.Helper()
	q := query{client: w.client().CoreV1().RESTClient(), resource: "nodes", name: w.nodeName}
	return await(w.T, q, &corev1.Node{}, "the node "+what, func(nodes []*corev1.Node) bool {
		return len(nodes) == 1 && done(nodes[0])
	})[0]
}

func (w *world) awaitLease(what string, done func(*coordinationv1.Lease) bool) {
	w.Helper()
	q := query{
		client: w.client().CoordinationV1().RESTClient(), resource: "leases",
		namespace: corev1.NamespaceNodeLease, name: w.nodeName,
	}
	await(w.T, q, &coordinationv1.Lease{}, "the node's lease "+what, func(leases []*coordinationv1.Lease) bool {
		return len(leases) == 1 && done(leases[0])
	})
}

func nodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func ownedBy(node *corev1.Node) func(*coordinationv1.Lease) bool {
	return func(lease *coordinationv1.Lease) bool {
		return len(lease.OwnerReferences) == 1 && lease.OwnerReferences[0].UID == node.UID
	}
}
