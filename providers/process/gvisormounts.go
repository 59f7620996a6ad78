// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	fieldpath "k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/bundle"
)

const (
	// filesOfAll counts the mounted files of every container: hosts, hostname, resolv.conf and the termination
	// message.
	filesOfAll = 4
	// maxVolumeMounts is the number of volume mounts that a gVisor container can have on every machine. Each
	// cgroup controller of the machine may need one more mount, which shows the container its limits.
	maxVolumeMounts = bundle.MaxGuestMounts - filesOfAll - 4
)

// checkPod refuses pods that CreatePod refuses on every machine.
func (c Config) checkPod(pod *corev1.Pod) error {
	if cmp.Or(c.Isolation, IsolationGVisor) == IsolationGVisor {
		if err := mountsOfGuest(pod); err != nil {
			return err
		}
	}
	return podruntime.Check(podruntime.Config{HostPaths: c.HostPaths, LocalVolumes: c.LocalVolumes, ProvisionVolumes: c.ProvisionVolumes}, pod)
}

// mountsOfGuest returns an error if a container has more volume mounts than gVisor supports.
func mountsOfGuest(pod *corev1.Pod) error {
	spec := fieldpath.NewPath("spec")
	for _, list := range []struct {
		at  *fieldpath.Path
		all []corev1.Container
	}{{spec.Child("initContainers"), pod.Spec.InitContainers}, {spec.Child("containers"), pod.Spec.Containers}} {
		for i := range list.all {
			if n := len(list.all[i].VolumeMounts); n > maxVolumeMounts {
				return errdefs.InvalidInputf("%s: container %s mounts %d volumes, and gVisor starts a container with at most %d: mount fewer (a projected volume has the content of several), or use isolation: runc",
					list.at.Index(i).Child("volumeMounts"), list.all[i].Name, n, maxVolumeMounts)
			}
		}
	}
	return nil
}
