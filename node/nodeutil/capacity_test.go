// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

func withCPU(cpu string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
}

func internalIP(ip string) []corev1.NodeAddress {
	return []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}
}

func cpuOf(list corev1.ResourceList) string {
	cpu := list[corev1.ResourceCPU]
	return cpu.String()
}

func TestCapacityFollowsTheProvider(t *testing.T) {
	naive := node.NewNaiveNodeProvider()
	w := &capacityWatch{NodeProvider: naive}
	n := &corev1.Node{Status: corev1.NodeStatus{Capacity: withCPU("8")}}
	w.observe(n)
	if got := cpuOf(w.allocatable()); got != "8" {
		t.Errorf("capacity alone: got %s, want 8", got)
	}

	var told *corev1.Node
	w.NotifyNodeStatus(t.Context(), func(n *corev1.Node) { told = n })
	n = &corev1.Node{Status: corev1.NodeStatus{Capacity: withCPU("8"), Allocatable: withCPU("6"), Addresses: internalIP("192.0.2.2")}}
	if err := naive.UpdateStatus(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if got := cpuOf(w.allocatable()); got != "6" || told != n {
		t.Errorf("after an update: got %s, told %v", got, told)
	}
	if got := w.addresses(); !slices.Equal(got, internalIP("192.0.2.2")) {
		t.Errorf("addresses after an update: got %v, want 192.0.2.2", got)
	}
}

// TestPodsAreToldTheAddressOfTheNode: pods get the node's address from its configuration, until the provider
// reports another address (TestCapacityFollowsTheProvider).
func TestPodsAreToldTheAddressOfTheNode(t *testing.T) {
	outsideCluster(t)
	var pods node.PodControllerConfig
	_, err := NewNode("n1", newMemory().asProvider, WithClient(fake.NewClientset()), func(cfg *NodeConfig) error {
		cfg.NodeSpec.Status.Addresses = internalIP("192.0.2.1")
		return nil
	}, WithPodControllerConfigOverrides(func(cfg *node.PodControllerConfig) error {
		pods = *cfg
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if got := pods.NodeAddresses(); !slices.Equal(got, internalIP("192.0.2.1")) {
		t.Errorf("as configured: got %v, want 192.0.2.1", got)
	}
}

// TestNodeDoesNotWaitForPodsForever: if the pod controller never becomes ready, the node controller waits for
// podsHeadStart only.
func TestNodeDoesNotWaitForPodsForever(t *testing.T) {
	outsideCluster(t)
	synctest.Test(t, func(t *testing.T) {
		n, err := NewNode("n1", newMemory().asProvider, WithClient(fake.NewClientset()))
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		n.waitForPods(t.Context())
		if took := time.Since(begin); took != podsHeadStart {
			t.Errorf("the node controller waited %s, want %s", took, podsHeadStart)
		}
	})
}
