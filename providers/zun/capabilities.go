// SPDX-License-Identifier: Apache-2.0

package zun

import "github.com/virtual-kubelet/virtual-kubelet/capability"

// Capabilities returns the capabilities of a provider with this configuration.
func (c Config) Capabilities() capability.Declaration {
	const noField = "a container of Zun has no field for it"
	d := capability.Only(capability.RunToCompletion, capability.Hostname).
		Note("a terminal and an input that has no end: no stdinOnce; not in capsules", capability.InteractiveContainers).
		Note("of memory; cpu is a weight, and nothing stops a container that takes more", capability.ContainerLimits).
		Note("mounted file by file with mode 0644, writable, and as they were when the pod was created; not in capsules", capability.ObjectVolumes).
		Note("a token is not renewed, so that a pod that needs one for longer asks for a long one; not in capsules", capability.TokenVolumes).
		Note("of files; no subPathExpr", capability.SubPath).
		Note("by exec of this process; not in capsules", capability.ExecProbes)
	if c.ReachesPods {
		d = d.Note("by this process; not in capsules", capability.NetworkProbes)
	} else {
		d = d.Lacks("they would be made by this process: set reachesPods of the configuration if it has a route to pods", capability.NetworkProbes)
	}
	if c.EmptyDirGiB > 0 {
		d = d.Note("a Cinder volume of the size in the configuration; not in capsules", capability.EmptyDir)
	} else {
		d = d.Lacks("set emptyDirGiB of the configuration, to have Cinder volumes", capability.EmptyDir)
	}
	return d.
		Lacks(noField, capability.ContainerRestartRules, capability.StopSignal, capability.PodResources, capability.FSGroup, capability.HostAliases,
			capability.ImageVolumes, capability.MountPropagation, capability.MountOptions, capability.BlockDevices, capability.EnvFiles, capability.UserNamespaces,
			capability.NoNewPrivileges, capability.Seccomp, capability.AppArmor, capability.SELinux, capability.UnmaskedProc, capability.Sysctls,
			capability.RunAsUser, capability.Capabilities, capability.ReadOnlyRoot, capability.DNS, capability.SharedProcesses, capability.MemoryEmptyDir,
			capability.WindowsOptions, capability.RuntimeClass, capability.ResourceClaims, capability.TerminationMessages, capability.OtherVolumes).
		Lacks("every capsule with init containers fails in releases of Zun of the last years", capability.InitContainers, capability.Sidecars).
		Lacks("the hook would be a request of its own, which Zun does not make", capability.PostStartHooks, capability.PreStopHooks).
		Lacks("Zun cannot add a container to a running pod", capability.EphemeralContainers).
		Lacks("this provider does not resize containers", capability.InPlaceResize).
		Lacks("a container of Zun has no node of yours", capability.HostPath, capability.HostNetwork, capability.HostPorts, capability.HostPortMapping,
			capability.HostNamespaces, capability.Privileged).
		Lacks("this provider does not attach volumes of the cluster", capability.PersistentVolume, capability.CSIVolumes).
		Lacks("this provider does not renew them", capability.CertificateFiles)
}
