// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"crypto/sha256"
	"fmt"
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/criconfig"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/podcgroup"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/stats"
)

const (
	// DefaultPodPidsLimit is the default limit of processes and threads of a pod.
	DefaultPodPidsLimit = 4096
	// machineCgroups is the directory of a machine's cgroups.
	machineCgroups = "/sys/fs/cgroup"
)

// cgroups are the cgroups of the pods. With the zero value, the runtime decides about cgroups.
type cgroups struct {
	tree *podcgroup.Tree
	pids int64
	// sandbox is the default overhead of a pod.
	sandbox corev1.ResourceList
	all     podcgroup.Limits // limits of all pods together
}

// openCgroups makes the cgroup tree of the pods. Its name comes from the directory of this node. No other
// process uses this directory.
func openCgroups(cfg Config, kept reserved, node corev1.NodeStatus) (cgroups, error) {
	c := cgroups{pids: cfg.PodPidsLimit, sandbox: cfg.SandboxOverhead}
	if cfg.CgroupParent == "" {
		if c.pids > 0 {
			return c, errdefs.InvalidInputf("pod runtime: podPidsLimit: pods have no cgroups of their own, so nothing could enforce it: set cgroupParent")
		}
		return c, nil
	}
	if c.pids == 0 {
		c.pids = DefaultPodPidsLimit
	}
	in := podcgroup.Machine(machineCgroups)
	if cfg.CgroupRoots != nil {
		in = podcgroup.At(cfg.CgroupRoots)
	}
	owner := sha256.Sum256([]byte(cfg.Root))
	c.tree = podcgroup.New(in, path.Join(cfg.CgroupParent, fmt.Sprintf("pods-%s-%x", cfg.Node.Name, owner[:4])))
	c.all = podcgroup.Limits{CPUShares: node.Allocatable.Cpu().MilliValue() * 1024 / 1000}
	if memory := kept.daemons.Memory(); !memory.IsZero() {
		c.all.Memory = node.Capacity.Memory().Value() - memory.Value()
	}
	if pid := kept.daemons[resourcePID]; !pid.IsZero() {
		c.all.Pids = stats.MaxPID() - pid.Value()
	}
	if err := c.tree.Prepare(c.all); err != nil {
		return c, fmt.Errorf("pod runtime: cgroupParent %s: %w", cfg.CgroupParent, err)
	}
	return c, nil
}

// podGroup returns the cgroup of a pod, or "" if the runtime decides.
func (c cgroups) podGroup(pod *corev1.Pod) string {
	if c.tree == nil {
		return ""
	}
	return c.tree.Group(pod.UID, criconfig.QOS(pod))
}

// podLimits returns the limits of a pod as a whole.
func (c cgroups) podLimits(pod *corev1.Pod) podcgroup.Limits {
	if pod.Spec.Overhead == nil {
		with := *pod
		with.Spec.Overhead, pod = c.sandbox, &with
	}
	r := criconfig.Whole(pod)
	l := podcgroup.Limits{CPUShares: r.GetCpuShares(), CPUQuota: r.GetCpuQuota(), CPUPeriod: r.GetCpuPeriod(), Memory: r.GetMemoryLimitInBytes(), Pids: c.pids}
	if l.Memory == 0 {
		l.Memory = -1
	}
	return l
}

// makeGroup makes the cgroup of a pod.
func (c cgroups) makeGroup(pod *corev1.Pod) error {
	if c.tree == nil {
		return nil
	}
	return c.tree.Make(pod.UID, criconfig.QOS(pod), c.podLimits(pod))
}

// restoreGroup makes the cgroup of a pod again if it is missing but its sandbox exists.
func (c cgroups) restoreGroup(pod *corev1.Pod) error {
	if c.tree == nil {
		return nil
	}
	return c.tree.Restore(pod.UID, criconfig.QOS(pod), c.podLimits(pod))
}

// accountPod adds the pod to its QoS class.
func (c cgroups) accountPod(pod *corev1.Pod) error {
	if podEnded(pod) {
		return c.tree.Forget(pod.UID)
	}
	return c.tree.Know(pod.UID, criconfig.QOS(pod), c.podLimits(pod))
}

// resizeGroup changes the cgroup of a pod, before and after the change of its containers.
func (c cgroups) resizeGroup(pod *corev1.Pod, containers func() error) error {
	if c.tree == nil {
		return containers()
	}
	if err := c.tree.Raise(c.podGroup(pod), c.podLimits(pod)); err != nil {
		return err
	}
	if err := containers(); err != nil {
		return err
	}
	return c.makeGroup(pod)
}

// removeGroup removes the cgroup of a removed pod, and kills its processes.
func (c cgroups) removeGroup(uid types.UID) error {
	if c.tree == nil {
		return nil
	}
	return c.tree.Remove(uid)
}

// close removes unneeded groups.
func (c cgroups) close() {
	if c.tree != nil {
		c.tree.Close()
	}
}

// podsWithGroup returns the pods with a cgroup.
func (c cgroups) podsWithGroup() []types.UID {
	if c.tree == nil {
		return nil
	}
	return c.tree.Pods()
}
