// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	cri "k8s.io/cri-api/pkg/apis"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
)

// Config is what a Runtime is made from.
type Config struct {
	// Runtime and Images are the runtime that has the containers. Required.
	Runtime cri.RuntimeService
	Images  cri.ImageManagerService
	// Node is the node of the pods, as it will be registered: its name, addresses and
	// allocatable resources are what pods are told. Required.
	Node *corev1.Node
	// Recorder gets the events about pods. Required.
	Recorder record.EventRecorder
	// Root is the directory for what pods need on disk: volumes and files that are mounted
	// into containers. Required; only one process may use it.
	Root string
	// LogRoot is the directory of the logs of containers, as the runtime sees it. Required.
	LogRoot string
	// ClusterDNS are the addresses of the cluster's DNS servers; without any, pods that ask for
	// the cluster's DNS get that of the machine, with an event.
	ClusterDNS []string
	// ClusterDomain is the domain of the cluster's DNS; "" is cluster.local.
	ClusterDomain string
	// HostPaths are the directories that volumes of the kind hostPath may be in; none means that such
	// volumes are refused, "/" allows all.
	HostPaths []string
	// CgroupParent is the cgroup that those of pods are made in; "" leaves it to the runtime.
	CgroupParent string
	// RuntimeHandler returns the handler of a RuntimeClass; nil refuses pods that name one.
	RuntimeHandler func(ctx context.Context, class string) (string, error)
	// Privileged allows what gives a container power over the machine: privileged containers, and the
	// network and the namespaces of the host.
	Privileged bool
	// Lacks are features of pods that the runtime below does not have, and why; pods that ask for
	// them are refused.
	Lacks map[capability.Feature]string
	// Notes are what users should know of features that the runtime has.
	Notes map[capability.Feature]string
}
