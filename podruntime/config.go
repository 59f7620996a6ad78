// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	cri "k8s.io/cri-api/pkg/apis"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/probe"
)

// SandboxVolumesAnnotation is an annotation of a sandbox, not of a pod. It lists, in JSON, the directories of
// volumes in memory that only the sandbox's containers use and mount as a whole. See Config.SandboxVolumes.
const SandboxVolumesAnnotation = "virtual-kubelet.io/sandbox-volumes"

// SandboxEnder is an ability of Config.Runtime: containers end with less work if their sandbox ends with them.
type SandboxEnder interface {
	// EndSandbox announces, before the containers of a sandbox stop, that no more containers start in it. It changes nothing else: each container
	// still has its grace period, and the sandbox stops after them. EndSandbox may be called repeatedly, and for a sandbox that does not exist.
	EndSandbox(id string)
}

// EventRecorder writes events; a record.EventRecorder of client-go is one.
type EventRecorder interface {
	Event(object runtime.Object, eventType, reason, message string)
	Eventf(object runtime.Object, eventType, reason, format string, args ...any)
}

// Config is the configuration of a Runtime.
type Config struct {
	// Runtime and Images are the container runtime. Required.
	Runtime cri.RuntimeService
	Images  cri.ImageManagerService
	// Node is the node of the pods, as it will be registered. Pods get its name, addresses and allocatable resources from it. Required.
	Node *corev1.Node
	// Recorder records the events about pods. Required.
	Recorder EventRecorder
	// Root is the directory for volumes, and for files that are mounted into containers. Required; only one
	// process may use it.
	Root string
	// LogRoot is the directory of the logs of containers, as the runtime sees it. Required.
	LogRoot string
	// KeepLogs keeps the logs of a deleted pod: the caller removes them.
	KeepLogs bool
	// ClusterDNS are the addresses of the cluster's DNS servers. Without them, pods that request the cluster's DNS get the machine's DNS, with an
	// event.
	ClusterDNS []string
	// ClusterDomain is the domain of the cluster's DNS; "" is cluster.local.
	ClusterDomain string
	// Nameserver is the DNS server of pods with their own network, if they cannot reach the machine's DNS servers. Default: the machine's DNS
	// servers.
	Nameserver string
	// Pods is the network of pods if the machine is not part of it: probes and hooks reach pods through it. Nil
	// means that the machine reaches the addresses of pods.
	Pods probe.PodNetwork
	// HostPaths are the directories for volumes of the kind hostPath. An empty list refuses such volumes; "/"
	// allows all.
	HostPaths []string
	// LocalVolumes are the directories for PersistentVolumes of the kind local, in addition to HostPaths.
	// Without either, pods with a PersistentVolume claim are refused.
	LocalVolumes []string
	// ProvisionVolumes is the directory for the node's PersistentVolumes, for claims of StorageClasses with the provisioner
	// virtual-kubelet.io/local-path; "" disables provisioning. The directory also counts as one of LocalVolumes.
	ProvisionVolumes string
	// CgroupParent is the parent of the pods' cgroups. As with a kubelet, each pod has a cgroup, inside the cgroup of its class for Burstable and
	// BestEffort, and all of them are in one cgroup of this node. With "", the runtime decides about cgroups, and pods have no limits as a whole.
	CgroupParent string
	// CgroupRoots are the directories of CgroupParent in the runtime's view: one for each controller's hierarchy (cpu, memory and pids), or "" for
	// the unified hierarchy. Nil selects the machine's hierarchies. Other controllers limit no pod, and are only searched for leftovers of the
	// runtime.
	CgroupRoots map[string]string
	// PodPidsLimit is the limit of processes and threads of a pod; a negative value means no limit. 0 means DefaultPodPidsLimit if pods have cgroups.
	// A positive value is an error without cgroups.
	PodPidsLimit int64
	// SandboxOverhead has the resources of the sandbox itself, if they are considerable. They are added to the limits of a pod's cgroup, like the
	// overhead of a RuntimeClass. A pod's own overhead replaces them.
	SandboxOverhead corev1.ResourceList
	// SandboxVolumes sets SandboxVolumesAnnotation, which lists the memory volumes that the kernel of a sandbox may provide itself.
	SandboxVolumes bool
	// SubPaths means that the runtime opens subPaths of volumes if this process may not mount. HostPath is then a directory that no container can
	// replace, and ImageSubPath, of a mount without image, is the path below it, with // between its steps. The runtime opens each step inside the
	// previous one, even if there are links, and mounts the opened file. Without SubPaths, subPaths of writable volumes are then refused.
	SubPaths bool
	// RuntimeHandler returns the handler of a RuntimeClass; nil refuses pods that name a class.
	RuntimeHandler func(ctx context.Context, class string) (string, error)
	// Privileged allows privileged containers, and the network and namespaces of the host.
	Privileged bool
	// MachineNetwork puts every pod into the network of the machine. Pods with settings for their own network are refused.
	MachineNetwork bool
	// AllowedUnsafeSysctls are the sysctls that pods may set in addition to the safe sysctls, as in a kubelet's setting: names, and prefixes such as
	// kernel.msg*. Only sysctls of a pod's namespaces are allowed.
	AllowedUnsafeSysctls []string
	// ImageGC configures the removal of unused images; the zero value has a kubelet's defaults.
	ImageGC ImageGC
	// EvictionHard are the minimum available amounts of the machine's resources, as in a kubelet's setting, such as memory.available: 100Mi and
	// nodefs.available: 10%. Below a threshold, the node sets its conditions, accepts no more pods, and evicts pods one by one. Nil means no
	// eviction; DefaultEvictionHard returns thresholds for a machine.
	EvictionHard map[string]string
	// Capacity is the capacity of the node where it differs from the machine's.
	Capacity corev1.ResourceList
	// KubeReserved and SystemReserved are kept from pods for the node and for other programs of the machine, as in a kubelet's settings: cpu, memory,
	// ephemeral-storage and pid. The allocatable amount is the capacity minus both, and minus the memory and disk of EvictionHard.
	KubeReserved, SystemReserved map[string]string
	// Lacks are missing features of the runtime, with the reasons. Pods that need them are refused.
	Lacks map[capability.Feature]string
	// Notes are notes for users about features of the runtime.
	Notes map[capability.Feature]string
}
