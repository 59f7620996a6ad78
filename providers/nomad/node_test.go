// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestNodeIsReady checks that the node is ready, and that its server keeps its port when clients change.
func TestNodeIsReady(t *testing.T) {
	_, p := openDouble(t, objects{})
	p.d.placeError = errors.New("not known yet")
	n := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady}, {Type: corev1.NodeDiskPressure}}}}
	p.ConfigureNode(t.Context(), n)
	n.Status.DaemonEndpoints.KubeletEndpoint.Port = 10250 // the port is known only later
	var told *corev1.Node
	p.NotifyNodeStatus(t.Context(), func(n *corev1.Node) { told = n })
	if told != nil {
		t.Error("clients were told of before they are known")
	}
	p.d.takePlace(place{clients: 1, cpu: 3, mhz: 1000})
	p.NotifyNodeStatus(t.Context(), func(n *corev1.Node) { told = n })
	if told == nil || told.Status.Capacity.Cpu().Value() != 3 || told.Status.DaemonEndpoints.KubeletEndpoint.Port != 10250 {
		t.Fatalf("the node is told as %+v", told)
	}
	for _, c := range told.Status.Conditions {
		want := corev1.ConditionFalse
		if c.Type == corev1.NodeReady {
			want = corev1.ConditionTrue
		}
		if c.Status != want {
			t.Errorf("condition %s is %q, want %s", c.Type, c.Status, want)
		}
	}
}
