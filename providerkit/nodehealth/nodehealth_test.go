// SPDX-License-Identifier: Apache-2.0

package nodehealth

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestWell: each condition exists once, whatever the node had before, and only Ready is true.
func TestWell(t *testing.T) {
	n := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady}, {Type: corev1.NodeDiskPressure}}}}
	Well(n, "Backend")
	seen := map[corev1.NodeConditionType]corev1.ConditionStatus{}
	for _, c := range n.Status.Conditions {
		seen[c.Type] = c.Status
		if c.Reason != "Backend" || c.LastTransitionTime.IsZero() {
			t.Errorf("got %+v", c)
		}
	}
	if len(n.Status.Conditions) != 5 || len(seen) != 5 || seen[corev1.NodeReady] != corev1.ConditionTrue || seen[corev1.NodeDiskPressure] != corev1.ConditionFalse {
		t.Errorf("got %v", seen)
	}
}
