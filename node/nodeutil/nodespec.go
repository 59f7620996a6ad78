// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"net"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	labelType      = "type"
	labelRole      = "kubernetes.io/role"
	valueType      = "virtual-kubelet"
	valueRole      = "agent"
	clientGoModule = "k8s.io/client-go"
)

// NodeLabels returns the labels of a registered node, unless an option or its provider changes them. Agents and
// load balancers of clouds use two of them to avoid virtual nodes: docs/decisions/0055-agents-of-nodes.md.
func NodeLabels(name string) map[string]string {
	return map[string]string{
		labelType:                        valueType,
		labelRole:                        valueRole,
		corev1.LabelHostname:             name,
		corev1.LabelOSStable:             runtime.GOOS,
		corev1.LabelArchStable:           runtime.GOARCH,
		corev1.LabelNodeExcludeBalancers: "true",
	}
}

// defaultNode returns the initial node for options.
func defaultNode(name string) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: NodeLabels(name),
		},
		Status: corev1.NodeStatus{
			Phase: corev1.NodePending,
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady},
				{Type: corev1.NodeDiskPressure},
				{Type: corev1.NodeMemoryPressure},
				{Type: corev1.NodePIDPressure},
				{Type: corev1.NodeNetworkUnavailable},
			},
		},
	}
}

// completeNode sets the node fields that the program left empty.
func completeNode(n *corev1.Node) {
	info := &n.Status.NodeInfo
	if info.OperatingSystem == "" {
		info.OperatingSystem = runtime.GOOS
	}
	if info.Architecture == "" {
		info.Architecture = runtime.GOARCH
	}
	if info.KubeletVersion == "" {
		info.KubeletVersion = kubeletVersion()
	}
	follow(n.Labels, corev1.LabelOSStable, runtime.GOOS, info.OperatingSystem)
	follow(n.Labels, corev1.LabelArchStable, runtime.GOARCH, info.Architecture)
}

// follow corrects a label that still has the default although the program has set another value in the node's status, because the scheduler
// uses the label.
func follow(labels map[string]string, key, ours, actual string) {
	if labels[key] == ours {
		labels[key] = actual
	}
}

// completePort publishes the port at which the API server reaches the node's server, unless the program has set a port.
func completePort(n *corev1.Node, addr string) {
	if n.Status.DaemonEndpoints.KubeletEndpoint.Port != 0 {
		return
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return
	}
	if p, err := strconv.ParseUint(port, 10, 16); err == nil {
		n.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(p)
	}
}

// kubeletVersion returns a version with the Kubernetes release of the client libraries in this binary, because the node behaves like that
// release, and with a suffix that distinguishes it from a kubelet. API clients expect a semantic version. Test binaries have no information
// about their libraries.
func kubeletVersion() string {
	var libraries []*debug.Module
	if build, ok := debug.ReadBuildInfo(); ok {
		libraries = build.Deps
	}
	return releaseOf(libraries) + "-vk"
}

func releaseOf(libraries []*debug.Module) string {
	for _, m := range libraries {
		if m.Path != clientGoModule {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		// The libraries have version v0.X.Y for Kubernetes v1.X.Y.
		if rest, ok := strings.CutPrefix(m.Version, "v0."); ok {
			return "v1." + rest
		}
	}
	return "v0.0.0"
}

// readyNode returns a ready copy of n, for backends without a NodeProvider.
func readyNode(n *corev1.Node, at time.Time) *corev1.Node {
	n = n.DeepCopy()
	n.Status.Phase = corev1.NodeRunning
	now := metav1.NewTime(at)
	ready := corev1.NodeCondition{
		Type:               corev1.NodeReady,
		Status:             corev1.ConditionTrue,
		Reason:             "KubeletReady",
		Message:            "Kubelet is ready",
		LastHeartbeatTime:  now,
		LastTransitionTime: now,
	}
	for i, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		if c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			ready.LastTransitionTime = c.LastTransitionTime
		}
		n.Status.Conditions[i] = ready
		return n
	}
	n.Status.Conditions = append(n.Status.Conditions, ready)
	return n
}
