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

// SandboxVolumesAnnotation is the annotation of a sandbox, not of a pod, with the directories of volumes in memory that nobody looks into
// but its containers, which mount them as a whole: a list in JSON. See Config.SandboxVolumes.
const SandboxVolumesAnnotation = "virtual-kubelet.io/sandbox-volumes"

// SandboxEnder is what a Config.Runtime may be too, if containers end with less work where their sandbox ends with them.
type SandboxEnder interface {
	// EndSandbox tells that nothing is started in that sandbox any more, before its containers are stopped. It changes nothing else: each
	// of them still has its grace period, and the sandbox is stopped after them. It may be called again, and for one that is not there.
	EndSandbox(id string)
}

// EventRecorder writes events; a record.EventRecorder of client-go is one.
type EventRecorder interface {
	Event(object runtime.Object, eventType, reason, message string)
	Eventf(object runtime.Object, eventType, reason, format string, args ...any)
}

// Config is what a Runtime is made from.
type Config struct {
	// Runtime and Images are the runtime that has the containers. Required.
	Runtime cri.RuntimeService
	Images  cri.ImageManagerService
	// Node is the node of the pods, as it will be registered: its name, addresses and
	// allocatable resources are what pods are told. Required.
	Node *corev1.Node
	// Recorder gets the events about pods. Required.
	Recorder EventRecorder
	// Root is the directory for what pods need on disk: volumes and files that are mounted
	// into containers. Required; only one process may use it.
	Root string
	// LogRoot is the directory of the logs of containers, as the runtime sees it. Required.
	LogRoot string
	// KeepLogs leaves the logs of a pod that was deleted where they are: who made the Runtime removes them.
	KeepLogs bool
	// ClusterDNS are the addresses of the cluster's DNS servers; without any, pods that ask for
	// the cluster's DNS get that of the machine, with an event.
	ClusterDNS []string
	// ClusterDomain is the domain of the cluster's DNS; "" is cluster.local.
	ClusterDomain string
	// Nameserver is the DNS server that pods with a network of their own get in place of those of the machine, which they may not reach;
	// "" for those of the machine.
	Nameserver string
	// Pods is the network of pods, where the machine is not in it: probes and hooks reach pods by it. Nil: the machine reaches the
	// addresses of pods.
	Pods probe.PodNetwork
	// HostPaths are the directories that volumes of the kind hostPath may be in; none means that such
	// volumes are refused, "/" allows all.
	HostPaths []string
	// LocalVolumes are the directories that PersistentVolumes of the kind local may be in, beside HostPaths. Without either,
	// pods that claim a PersistentVolume are refused.
	LocalVolumes []string
	// ProvisionVolumes is the directory that the node makes PersistentVolumes in, for claims of StorageClasses with the provisioner
	// virtual-kubelet.io/local-path; "" makes none. It is also one of LocalVolumes.
	ProvisionVolumes string
	// CgroupParent is the cgroup that those of pods are made in, as a kubelet makes them: a group for each pod, those of the classes
	// Burstable and BestEffort in a group for each class, and all in one group of this node. "" leaves it to the runtime, and limits
	// no pod as a whole.
	CgroupParent string
	// CgroupRoots are where the runtime takes CgroupParent to be: directories in hierarchies of cgroups by controller, cpu, memory and
	// pids, or "" for the unified hierarchy. Nil is where the machine has them. Those of other controllers limit no pod; it is looked
	// there for what the runtime leaves of one.
	CgroupRoots map[string]string
	// PodPidsLimit is how many processes and threads a pod may have, below 0 any number. 0 is DefaultPodPidsLimit where pods have
	// cgroups; more than 0 is an error where they have none.
	PodPidsLimit int64
	// SandboxOverhead is what the sandbox of a pod needs for itself, where that is more than next to nothing: the cgroup of a pod allows
	// that much more than its containers may use, as for a pod whose RuntimeClass has an overhead. A pod with one has its own.
	SandboxOverhead corev1.ResourceList
	// SandboxVolumes tells the runtime with each sandbox which volumes in memory its kernel may have by itself: see SandboxVolumesAnnotation.
	SandboxVolumes bool
	// SubPaths says that the runtime opens what a mount has of a volume, where this process may not mount: HostPath is then a directory that
	// no container can replace, and ImageSubPath, of a mount without image, is the way from there: steps with // between them. The runtime
	// opens each step beneath the one before, whatever links are on it, and mounts what it has opened. Without, a part of a volume that
	// containers can write is refused there.
	SubPaths bool
	// RuntimeHandler returns the handler of a RuntimeClass; nil refuses pods that name one.
	RuntimeHandler func(ctx context.Context, class string) (string, error)
	// Privileged allows what gives a container power over the machine: privileged containers, and the
	// network and the namespaces of the host.
	Privileged bool
	// MachineNetwork says that every pod is in the network of the machine, whether it asks for that or not: pods that set something of
	// a network of their own are refused.
	MachineNetwork bool
	// AllowedUnsafeSysctls are sysctls that pods may set besides those that are safe, as the setting of that name of a kubelet says
	// them: names, and beginnings of names such as kernel.msg*. Only those of the namespaces of a pod can be named.
	AllowedUnsafeSysctls []string
	// ImageGC says when images that nothing uses are removed; the zero value is as a kubelet does it.
	ImageGC ImageGC
	// EvictionHard is how much must be available of the machine at least, as the setting of that name of a kubelet says it, such
	// as memory.available: 100Mi and nodefs.available: 10%. Below that the node says so in its conditions, takes no further
	// pods, and evicts one after the other. Nil is no eviction; DefaultEvictionHard returns thresholds for a machine.
	EvictionHard map[string]string
	// Capacity is what the node offers, where that differs from what the machine has.
	Capacity corev1.ResourceList
	// KubeReserved and SystemReserved are what of that is kept from pods for the node itself and for what else runs on the machine, as
	// the settings of these names of a kubelet say it: cpu, memory, ephemeral-storage and pid. What pods may have is the capacity
	// without both, and without what EvictionHard keeps available of memory and of the disk.
	KubeReserved, SystemReserved map[string]string
	// Lacks are features of pods that the runtime below does not have, and why; pods that ask for
	// them are refused.
	Lacks map[capability.Feature]string
	// Notes are what users should know of features that the runtime has.
	Notes map[capability.Feature]string
}
