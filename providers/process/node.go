// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConfigureNode writes into n what the machine offers, and how containers are isolated.
func (p *Provider) ConfigureNode(ctx context.Context, n *corev1.Node) {
	p.Runtime.ConfigureNode(ctx, n)
	n.Status.NodeInfo.ContainerRuntimeVersion = "process://" + p.runtime.Isolation()
	n.Status.NodeInfo.Architecture = runtime.GOARCH
	if n.Status.NodeInfo.OperatingSystem == "" {
		n.Status.NodeInfo.OperatingSystem = runtime.GOOS
	}
	if len(n.Status.Capacity) == 0 {
		n.Status.Capacity, n.Status.Allocatable = machine(), machine()
	}
	if len(n.Status.Addresses) == 0 && p.node.InternalIP != "" {
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: p.node.InternalIP}}
	}
	if p.node.DaemonPort != 0 {
		n.Status.DaemonEndpoints.KubeletEndpoint.Port = p.node.DaemonPort
	}
	for i, c := range nodeConditions(time.Now()) {
		switch {
		case i >= len(n.Status.Conditions):
			n.Status.Conditions = append(n.Status.Conditions, c)
		case n.Status.Conditions[i].Status == "":
			n.Status.Conditions[i] = c
		}
	}
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[corev1.LabelNodeExcludeBalancers] = "true"
}

// machine is what this machine has.
func machine() corev1.ResourceList {
	memory := resource.MustParse("1Gi")
	if data, err := os.ReadFile("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			fields := strings.Fields(line)
			if len(fields) < 2 || fields[0] != "MemTotal:" {
				continue
			}
			if kib, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				memory = *resource.NewQuantity(kib<<10, resource.BinarySI)
			}
		}
	}
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		corev1.ResourceMemory: memory,
		corev1.ResourcePods:   resource.MustParse("110"),
	}
}

// nodeConditions are those of a node that is about to start; Ready follows when its controllers run.
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
		condition(corev1.NodeNetworkUnavailable, "RouteCreated", "pods are in the network of the machine"),
	}
}
