// SPDX-License-Identifier: Apache-2.0

package eci

import "github.com/virtual-kubelet/virtual-kubelet/capability"

// Capabilities returns the capabilities of a provider. They are the same for every configuration.
func (c Config) Capabilities() capability.Declaration {
	const noField = "a group of ECI has no field for it"
	return capability.Only(
		capability.RunToCompletion, capability.InitContainers, capability.EmptyDir, capability.MemoryEmptyDir, capability.Hostname, capability.HostAliases,
		capability.SharedProcesses, capability.ReadOnlyRoot,
	).
		Note("the two that ECI calls safe, and kernel.shm*, kernel.msg*, kernel.sem, fs.mqueue.*, net.* but for three", capability.Sysctls).
		Note("the file alone: FallbackToLogsOnError gives nothing more", capability.TerminationMessages).
		Note("commands, and requests by HTTP and TCP; no sleep", capability.PostStartHooks, capability.PreStopHooks).
		Note("startup probes, and liveness beside one, by this node with a session of exec each time, which restarts pods with one container that may be restarted", capability.ExecProbes).
		Note("startup, gRPC, headers and hosts by this node, which must reach the addresses of pods", capability.NetworkProbes).
		Note("the pod has the smallest size of ECI with room for all of them", capability.ContainerLimits).
		Note("files are as they were when the pod was created", capability.ObjectVolumes).
		Note("a token is not renewed, so that a pod that needs one for longer asks for a long one", capability.TokenVolumes).
		Note("NFS alone", capability.OtherVolumes).
		Note("no subPathExpr", capability.SubPath).
		Note("that of the VPC, unless the pod has one of its own: services of the cluster have no names there", capability.DNS).
		Note("not the group and not runAsNonRoot of init containers; no supplementalGroups", capability.RunAsUser).
		Note("they can be added, and not dropped", capability.Capabilities).
		LacksFields("a group of ECI can add capabilities only", capability.Capabilities, "capabilities.drop").
		LacksFields(noField, capability.RunAsUser, "supplementalGroups", "supplementalGroupsPolicy").
		Accept(capability.OwnMachine()...).
		Lacks(noField, capability.ContainerRestartRules, capability.StopSignal, capability.PodResources, capability.FSGroup,
			capability.ImageVolumes, capability.MountPropagation, capability.MountOptions, capability.BlockDevices, capability.EnvFiles, capability.UserNamespaces,
			capability.NoNewPrivileges, capability.Seccomp, capability.AppArmor, capability.SELinux, capability.UnmaskedProc,
			capability.WindowsOptions, capability.RuntimeClass, capability.ResourceClaims).
		Lacks("ECI orders containers by variables, and has none that is restarted by itself or runs beside init containers", capability.Sidecars).
		Lacks("ECI has no attach", capability.InteractiveContainers).
		Lacks("a group of ECI does not get further containers", capability.EphemeralContainers).
		Lacks("a pod of another size would be another group", capability.InPlaceResize).
		Lacks("a group of ECI has no node of yours", capability.HostPath, capability.HostNetwork, capability.HostPorts, capability.HostPortMapping,
			capability.HostNamespaces, capability.Privileged).
		Note("NFS, NAS by "+nasDriver+", and disks by "+diskDriver, capability.PersistentVolume).
		Lacks("a group of ECI mounts what claims name: make a PersistentVolume", capability.CSIVolumes).
		Lacks("this provider does not renew them", capability.CertificateFiles)
}
