// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"cmp"
	"context"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConfigureNode writes the capacity, addresses, daemon endpoint and conditions of this provider into the Node
// object. It leaves all other fields unchanged.
func (p *provider) ConfigureNode(_ context.Context, n *corev1.Node) {
	n.Status.Capacity = p.config.Capacity.DeepCopy()
	n.Status.Allocatable = p.config.Capacity.DeepCopy()
	n.Status.Conditions = nodeConditions(time.Now())
	n.Status.NodeInfo.OperatingSystem = cmp.Or(p.in.OperatingSystem, "linux")
	n.Status.NodeInfo.Architecture = runtime.GOARCH
	if p.in.InternalIP != "" {
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: p.in.InternalIP}}
	}
	if p.in.DaemonPort != 0 {
		n.Status.DaemonEndpoints.KubeletEndpoint.Port = p.in.DaemonPort
	}
	if p.config.ProviderID != "" {
		n.Spec.ProviderID = p.config.ProviderID
	}
}

// nodeConditions returns the conditions of a node that is about to start. Ready follows when the controllers of
// the node run.
func nodeConditions(now time.Time) []corev1.NodeCondition {
	condition := func(kind corev1.NodeConditionType, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message,
			LastHeartbeatTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
		}
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeReady, "KubeletPending", "kubelet is pending"),
		condition(corev1.NodeDiskPressure, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
		condition(corev1.NodeMemoryPressure, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
		condition(corev1.NodePIDPressure, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
		condition(corev1.NodeNetworkUnavailable, "RouteCreated", "the mock provider needs no routes"),
	}
}
