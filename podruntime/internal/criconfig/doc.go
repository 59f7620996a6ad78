// SPDX-License-Identifier: Apache-2.0

// Package criconfig turns a pod and its containers into what a runtime is asked for: configurations of
// sandboxes and containers.
//
// The guarantee: the same pod always gives the same configuration, and it is that which a kubelet sends.
//
// What surprises: the labels and annotations written here are all that is known of a pod after a restart of the
// process, until its spec comes.
package criconfig

import corev1 "k8s.io/api/core/v1"

// Settings are what of a configuration does not depend on the pod.
type Settings struct {
	// Node is the name of the node; see LabelNode.
	Node string
	// LogRoot is the directory of the logs of containers.
	LogRoot string
	// SeccompRoot is the directory that the names of seccomp profiles are in.
	SeccompRoot string
	// PodCgroup returns the cgroup of a pod; nil leaves it to the runtime.
	PodCgroup func(*corev1.Pod) string
	// MemoryCapacity is the memory of the machine in bytes.
	MemoryCapacity int64
	// OOMScoreFloor is the lowest oom_score_adj that the runtime may give: a process
	// without CAP_SYS_RESOURCE cannot go below its own.
	OOMScoreFloor int64
	// SwapLimits says that swap can be limited: containers then get none, beyond their memory.
	SwapLimits bool
	// CgroupV2 says that the machine has the unified hierarchy of cgroups.
	CgroupV2 bool
	// HugePageSizes are the sizes that the machine has, as cgroups write them, such as 2MB.
	HugePageSizes []string
}
