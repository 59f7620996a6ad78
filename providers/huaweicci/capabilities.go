// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

// Capabilities returns the features of pods with this configuration.
func (c Config) Capabilities() capability.Declaration {
	const noField = "the API of CCI has no field for it"
	return remotecluster.Capabilities().
		Note("limits are what is bought: requests and limits are the same, and the pod has the smallest size of CCI with room for them", capability.ContainerLimits).
		Note("TCP and HTTP; not gRPC, and with API 1.0 no startup probe by TCP", capability.NetworkProbes).
		Note("not of an emptyDir", capability.SubPath).
		Note("a subdomain is left out with API 2.0, which has none", capability.Hostname).
		Note("with the DNS of CCI, unless the pod has one of its own", capability.DNS).
		Note("commands and requests by HTTP; no sleep", capability.PostStartHooks, capability.PreStopHooks).
		Note("those that CCI lets pods set", capability.Sysctls, capability.Capabilities).
		Lacks(noField, capability.Sidecars, capability.ContainerRestartRules, capability.StopSignal, capability.PodResources, capability.ImageVolumes,
			capability.MountPropagation, capability.MountOptions, capability.EnvFiles, capability.UserNamespaces, capability.NoNewPrivileges,
			capability.Seccomp, capability.AppArmor, capability.SELinux, capability.WindowsOptions).
		Accept(capability.OwnMachine()...).
		Lacks("CCI has no attach", capability.InteractiveContainers)
}
