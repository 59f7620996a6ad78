// SPDX-License-Identifier: Apache-2.0

package aci

import "github.com/virtual-kubelet/virtual-kubelet/capability"

// Capabilities returns the capabilities of a provider with this configuration.
func (c Config) Capabilities() capability.Declaration {
	d := capability.Only(capability.RunToCompletion, capability.InitContainers, capability.RunAsUser, capability.Capabilities, capability.NoNewPrivileges).
		Note("startup probes, and liveness beside one, by this node with a session of exec each time, which restarts pods with one container; how ready a container is, is read from the events of ACI",
			capability.ExecProbes).
		Note("startup, TCP and gRPC by this node, which must reach the addresses of pods", capability.NetworkProbes).
		Note("a limit of memory counts as asked for, and one of CPU is at most what the containers of the group ask for together; an init container gets that too; in steps of 10m and 0.1 GB",
			capability.ContainerLimits).
		Note("without sizeLimit", capability.EmptyDir).
		Note("as they are when the pod is made, without directories in them and with the mode 0644", capability.ObjectVolumes).
		Note("a token is not renewed: pods must end before it does", capability.TokenVolumes).
		Note("azureFile", capability.OtherVolumes).
		Note("shares of Azure Files, by "+csiDriver, capability.CSIVolumes, capability.PersistentVolume)
	why := "a group of ACI has no field for it"
	if c.Seccomp.isSet() {
		d = d.Note("RuntimeDefault and Localhost, by files of the configuration", capability.Seccomp)
	} else {
		d = d.Lacks("name seccomp in the configuration: ACI takes the content of a profile", capability.Seccomp)
	}
	d = d.LacksFields(why, capability.RunAsUser, "supplementalGroups", "supplementalGroupsPolicy").
		Accept(capability.OwnMachine()...).
		Lacks(why, capability.PostStartHooks, capability.PreStopHooks, capability.StopSignal, capability.TerminationMessages, capability.Sidecars,
			capability.PodResources, capability.SubPath, capability.FSGroup, capability.MountPropagation, capability.HostAliases,
			capability.Hostname, capability.ReadOnlyRoot, capability.Sysctls, capability.MemoryEmptyDir, capability.SharedProcesses, capability.InteractiveContainers,
			capability.ContainerRestartRules).
		Lacks("a container group does not change while it runs", capability.EphemeralContainers, capability.InPlaceResize).
		Lacks("groups of ACI are privileged in the SKU Confidential only, which this provider does not check", capability.Privileged).
		Lacks("the machine is not yours", capability.HostNetwork, capability.HostPorts, capability.HostPortMapping, capability.HostPath, capability.HostNamespaces)
	if c.Network.Subnet == "" {
		return d.Lacks("only groups in a subnet have DNS settings: configure network", capability.DNS)
	}
	return d.Note("with name servers", capability.DNS)
}
