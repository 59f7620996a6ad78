// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
)

// TestFault21DeletedNodeComesBack deletes the node object under a daemon with pods.
func TestFault21DeletedNodeComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	daemon := w.start()
	names := w.startMany("pod", 10)
	before := map[string]types.UID{}
	for _, pod := range w.pods.list() {
		before[pod.Name] = pod.UID
	}
	rounds := inForm(2, 10)
	var registered, ready time.Duration
	began := time.Now()
	for range rounds {
		old := w.nodes.awaitOne(t, "the node is ready", nodeReady)
		w.leases.awaitOne(t, "the lease is the node's", ownedBy(old.UID))
		deleted := time.Now()
		if err := w.api.Client.CoreV1().Nodes().Delete(t.Context(), w.nodeName, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		again := w.nodes.awaitOne(t, "the node is registered again", func(node *corev1.Node) bool { return node.UID != old.UID })
		registered = max(registered, time.Since(deleted))
		w.nodes.awaitOne(t, "the node is ready again", func(node *corev1.Node) bool { return node.UID == again.UID && nodeReady(node) })
		ready = max(ready, time.Since(deleted))
		w.leases.awaitOne(t, "the lease is the new node's", ownedBy(again.UID))
	}
	w.within("the registration after the node was deleted", registered, 10*time.Second)
	w.within("Ready after the node was deleted", ready, 10*time.Second)
	replaced := 0
	for _, pod := range w.awaitRunning(len(names)) {
		if pod.UID != before[pod.Name] {
			replaced++
			t.Errorf("pod %s was replaced", pod.Name)
		}
	}
	w.untouched(began)
	w.alive(daemon)
	faultrow.Record(t, 21, "node object deleted under a daemon with 10 pods, several times",
		"rounds %d, registered again within %v, Ready within %v, the lease follows, pods deleted %d",
		rounds, registered.Round(time.Millisecond), ready.Round(time.Millisecond), replaced)
}

func ownedBy(uid types.UID) func(*coordinationv1.Lease) bool {
	return func(lease *coordinationv1.Lease) bool {
		return len(lease.OwnerReferences) == 1 && lease.OwnerReferences[0].UID == uid
	}
}

// TestFault22LeaseIsTakenBack: the lease is deleted, and later given to a holder that does not exist. The daemon
// takes it back.
func TestFault22LeaseIsTakenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	daemon := w.start()
	w.awaitRenewal(time.Time{})
	leases := w.api.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease)

	first, err := leases.Get(t.Context(), w.nodeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := leases.Delete(t.Context(), w.nodeName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.leases.awaitOne(t, "there is a new lease", func(lease *coordinationv1.Lease) bool { return lease.UID != first.UID && w.renewed(lease, began) })
	deleted := time.Since(began)

	began = time.Now()
	stolen := []byte(`{"spec":{"holderIdentity":"somebody-else"}}`)
	if _, err := leases.Patch(t.Context(), w.nodeName, types.MergePatchType, stolen, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.leases.awaitOne(t, "the lease is the node's and renewed", func(lease *coordinationv1.Lease) bool {
		return w.renewed(lease, began) && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "somebody-else"
	})
	took := time.Since(began)
	for what, gap := range map[string]time.Duration{"was deleted": deleted, "was stolen": took} {
		if gap > maxLeaseGap {
			t.Errorf("the lease %s: it took %v to renew it, want at most %v", what, gap, maxLeaseGap)
		}
	}
	if n := w.readyFlaps(time.Time{}); n > 0 {
		t.Errorf("the node was not ready %d times", n)
	}
	w.alive(daemon)
	faultrow.Record(t, 22, "lease deleted once, and given to an unknown holder once",
		"renewed %v after the deletion, taken back after %v", deleted.Round(time.Millisecond), took.Round(time.Millisecond))
}
