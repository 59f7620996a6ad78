// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	fieldpath "k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// machineCapabilities let a container in the host network control the machine: its interfaces, routes and
// packets, or other resources outside of the container's namespaces.
var machineCapabilities = []string{"ALL", "NET_ADMIN", "NET_RAW", "NET_BROADCAST", "SYS_ADMIN", "SYS_MODULE", "SYS_RAWIO", "SYS_BOOT", "SYS_TIME", "SYS_PTRACE",
	"DAC_READ_SEARCH", "BPF", "PERFMON", "MAC_ADMIN", "MAC_OVERRIDE", "SYSLOG"}

// refuseMachineCapabilities refuses machineCapabilities for a container in the host network, unless the
// configuration allows them. own is true if the pod has its own network.
func (r *Runtime) refuseMachineCapabilities(own bool, added []string) error {
	if own || r.config.Privileged || !r.isContained() {
		return nil // a program of the machine has the rights of its user
	}
	for _, name := range added {
		if short := strings.TrimPrefix(strings.ToUpper(name), "CAP_"); slices.Contains(machineCapabilities, short) {
			return fmt.Errorf("capability %s gives power over the machine to a pod in its network: leave it out, let pods have a network of their own (podNetwork), or set privileged: true for the provider", name)
		}
	}
	return nil
}

// refusePodCapabilities calls refuseMachineCapabilities for each container of a pod. The error names the field.
func (r *Runtime) refusePodCapabilities(pod *corev1.Pod) error {
	spec := fieldpath.NewPath("spec")
	own := r.network != nil && !pod.Spec.HostNetwork
	for _, list := range []struct {
		at  *fieldpath.Path
		all []corev1.Container
	}{{spec.Child("initContainers"), pod.Spec.InitContainers}, {spec.Child("containers"), pod.Spec.Containers}} {
		for i := range list.all {
			security := list.all[i].SecurityContext
			if security == nil || security.Capabilities == nil {
				continue
			}
			for j, name := range security.Capabilities.Add {
				if err := r.refuseMachineCapabilities(own, []string{string(name)}); err != nil {
					return errdefs.InvalidInputf("%s: %v", list.at.Index(i).Child("securityContext", "capabilities", "add").Index(j), err)
				}
			}
		}
	}
	return nil
}
