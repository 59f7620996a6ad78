// SPDX-License-Identifier: Apache-2.0

//go:build linux

package azurebatch

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestPoolThatGrows: the node has the resources of all machines in the pool, and more resources when the pool grows.
func TestPoolThatGrows(t *testing.T) {
	t.Parallel()
	h := newHome(t, aPool(), 2, newStill())
	h.pace.pool = 50 * time.Millisecond
	d := h.open()
	n := &corev1.Node{}
	d.kit.ConfigureNode(t.Context(), n)
	is := func(n *corev1.Node) string {
		c := n.Status.Capacity
		return c.Cpu().String() + " " + c.Memory().String() + " " + c.Pods().String()
	}
	if got := is(n); got != "8 32Gi 32" {
		t.Errorf("it offers %s", got)
	}
	reports := make(chan *corev1.Node, 1)
	d.kit.NotifyNodeStatus(t.Context(), func(n *corev1.Node) { reports <- n }) // it returns
	h.Run(d.kit)
	h.cloud.AddNode()
	if got := is(<-reports); got != "12 48Gi 48" {
		t.Errorf("with one more machine it offers %s", got)
	}
}
