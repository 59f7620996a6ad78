// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

func TestDrainStopsThePods(t *testing.T) {
	backend := newMemory()
	r := start(t, backend.asProvider)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "p", UID: "uid"},
		Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c"}}},
	}
	changes, err := r.client.CoreV1().Pods("d").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	if _, err := r.client.CoreV1().Pods("d").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitEvent(t, changes, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	if err := r.Drain(t.Context(), node.DrainGroups(time.Minute, time.Second)...); err != nil {
		t.Error(err)
	}
	waitEvent(t, changes, func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodFailed && p.Status.Reason == "Terminated"
	})
	if _, err := backend.GetPod(t.Context(), "d", "p"); err == nil {
		t.Error("the backend still has the pod")
	}
	nodes, err := r.client.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Stop()
	notReady := func(n *corev1.Node) bool {
		return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionFalse && c.Reason == "KubeletNotReady"
		})
	}
	n, err := r.client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !notReady(n) {
		waitEvent(t, nodes, notReady)
	}
}

// TestDrainBeforeTheNodeIsReady: Drain returns an error before the node is ready.
func TestDrainBeforeTheNodeIsReady(t *testing.T) {
	outsideCluster(t)
	n, err := NewNode("n1", newMemory().asProvider, WithClient(fake.NewClientset()))
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Drain(context.Background(), node.DrainGroups(time.Minute, time.Second)...); err == nil {
		t.Error("got no error")
	}
}
