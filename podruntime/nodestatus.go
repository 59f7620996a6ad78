// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// declaredFeatures are the features that the scheduler and the API server check before they assign pods that need them
// (k8s.io/component-helpers/nodedeclaredfeatures).
var declaredFeatures = []string{"InPlacePodVerticalScalingInitContainers", "RestartAllContainersOnContainerExits"}

// declareFeatures adds the features of this runtime to n.
func declareFeatures(n *corev1.Node) {
	all := append(slices.Clone(n.Status.DeclaredFeatures), declaredFeatures...)
	slices.Sort(all) // the API server insists
	n.Status.DeclaredFeatures = slices.Compact(all)
}

// wellConditions sets each condition without a status to the value of a healthy node, with a kubelet's messages. If the node is unhealthy, the result
// of Ping determines Ready.
func wellConditions(n *corev1.Node, now time.Time) {
	well := []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure", Message: "kubelet has no disk pressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID", Message: "kubelet has sufficient PID available"},
		{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse, Reason: "RuntimeNetwork", Message: "the container runtime makes the network of pods"},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"},
	}
	for _, c := range well {
		c.LastHeartbeatTime, c.LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
		i := slices.IndexFunc(n.Status.Conditions, func(has corev1.NodeCondition) bool { return has.Type == c.Type })
		switch {
		case i < 0:
			n.Status.Conditions = append(n.Status.Conditions, c)
		case n.Status.Conditions[i].Status == "":
			n.Status.Conditions[i] = c
		}
	}
}
