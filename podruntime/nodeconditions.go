// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodeConditions are the conditions of a node whose machine runs short of a resource. The evictor sets them.
type nodeConditions struct {
	mu     sync.Mutex
	kinds  []corev1.NodeConditionType // guarded by mu: the true conditions
	node   *corev1.Node               // guarded by mu: the node without these conditions; nil before the first watch
	notify func(*corev1.Node)         // guarded by mu
}

// current returns the true conditions.
func (c *nodeConditions) current() []corev1.NodeConditionType {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kinds
}

// watch calls notify whenever the conditions of the node change, and at once if there are any.
func (c *nodeConditions) watch(node *corev1.Node, notify func(*corev1.Node)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.node, c.notify = node, notify
	if notify != nil && len(c.kinds) > 0 {
		notify(underPressure(node, c.kinds, time.Now()))
	}
}

// report sets the true conditions.
func (c *nodeConditions) report(kinds []corev1.NodeConditionType) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds = kinds
	if c.notify != nil {
		c.notify(underPressure(c.node, kinds, time.Now()))
	}
}

// underPressure returns the node with these conditions, with a kubelet's messages.
func underPressure(node *corev1.Node, conditions []corev1.NodeConditionType, now time.Time) *corev1.Node {
	node = node.DeepCopy()
	for _, c := range []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Reason: "KubeletHasInsufficientMemory", Message: "kubelet has insufficient memory available"},
		{Type: corev1.NodeDiskPressure, Reason: "KubeletHasDiskPressure", Message: "kubelet has disk pressure"},
		{Type: corev1.NodePIDPressure, Reason: "KubeletHasInsufficientPID", Message: "kubelet has insufficient PID available"},
	} {
		if !slices.Contains(conditions, c.Type) {
			continue
		}
		c.Status, c.LastHeartbeatTime, c.LastTransitionTime = corev1.ConditionTrue, metav1.NewTime(now), metav1.NewTime(now)
		node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(old corev1.NodeCondition) bool { return old.Type == c.Type })
		node.Status.Conditions = append(node.Status.Conditions, c)
	}
	return node
}
