// SPDX-License-Identifier: Apache-2.0

package remotecluster

import "github.com/virtual-kubelet/virtual-kubelet/capability"

// Capabilities returns the features of pods that run in another cluster.
func Capabilities() capability.Declaration {
	return capability.All().
		Note("as the nodes of the remote cluster have it", capability.AppArmor, capability.SELinux, capability.Seccomp, capability.UserNamespaces,
			capability.WindowsOptions, capability.Sysctls, capability.ImageVolumes, capability.MountPropagation, capability.StopSignal,
			capability.ContainerRestartRules, capability.PodResources, capability.MountOptions, capability.EnvFiles).
		Note("with the DNS of the remote cluster, unless the pod has one of its own", capability.DNS).
		Note("tokens of the home cluster, replaced in a Secret of the remote cluster before they end", capability.TokenVolumes).
		Note("copies, which follow a change within half a minute and the time of the remote node", capability.ObjectVolumes).
		Lacks("pods get nothing of the nodes of the remote cluster", capability.HostPath, capability.HostNetwork, capability.HostNamespaces,
			capability.HostPorts, capability.HostPortMapping, capability.Privileged, capability.UnmaskedProc).
		Lacks("volumes are not taken to another cluster", capability.PersistentVolume, capability.CSIVolumes, capability.OtherVolumes, capability.BlockDevices).
		Lacks("keys and trust bundles of this cluster are not taken to another one yet", capability.CertificateFiles).
		Lacks("devices of the remote cluster cannot be claimed from here", capability.ResourceClaims).
		Lacks("classes of this cluster are not those of the remote one", capability.RuntimeClass).
		Lacks("it is not passed on to the remote cluster yet", capability.EphemeralContainers, capability.InPlaceResize)
}
