// SPDX-License-Identifier: Apache-2.0

// Package criconfig turns a pod and its containers into requests for a runtime: configurations of sandboxes and containers.
//
// The guarantee: the same pod always gives the same configuration, which equals the configuration of a kubelet.
//
// Note: after a restart of the process, the labels and annotations of this package are the only information about a pod until its spec
// arrives.
package criconfig

import corev1 "k8s.io/api/core/v1"

// Settings are the parts of a configuration common to all pods.
type Settings struct {
	// Node is the name of the node; see LabelNode.
	Node string
	// LogRoot is the directory of the logs of containers.
	LogRoot string
	// SeccompRoot is the directory of seccomp profiles.
	SeccompRoot string
	// PodCgroup returns the cgroup of a pod. If it is nil, the runtime decides.
	PodCgroup func(*corev1.Pod) string
	// MemoryCapacity is the memory of the machine in bytes.
	MemoryCapacity int64
	// OOMScoreFloor is the lowest allowed oom_score_adj of the runtime: a process without CAP_SYS_RESOURCE
	// cannot go below its own.
	OOMScoreFloor int64
	// SwapLimits means that the machine can limit swap: containers then get no swap.
	SwapLimits bool
	// CgroupV2 means that the machine has the unified cgroup hierarchy.
	CgroupV2 bool
	// HugePageSizes are the sizes of huge pages on the machine in the notation of cgroups, such as 2MB.
	HugePageSizes []string
}
