// SPDX-License-Identifier: Apache-2.0

package stackpath

import "github.com/virtual-kubelet/virtual-kubelet/capability"

// Capabilities returns the capabilities of a provider. They are the same for every configuration.
func (c Config) Capabilities() capability.Declaration {
	return capability.Only(capability.TerminationMessages, capability.HostAliases, capability.SharedProcesses, capability.ReadOnlyRoot, capability.NoNewPrivileges, capability.ExecProbes).
		Note("one at most: a workload has no order of them", capability.InitContainers).
		Note("commands, and requests by HTTP and TCP to the container itself; no sleep", capability.PostStartHooks, capability.PreStopHooks).
		Note("HTTP and TCP to the container itself; no gRPC", capability.NetworkProbes).
		Note("each container has the smallest of eight sizes with room for it", capability.ContainerLimits).
		Note("dnsConfig; no dnsPolicy None", capability.DNS).
		LacksFields("a workload may use the name servers of its network in addition to dnsConfig", capability.DNS, "dnsPolicy").
		Note("no supplementalGroupsPolicy", capability.RunAsUser).
		LacksFields("a workload has no field for it", capability.RunAsUser, "supplementalGroupsPolicy").
		Lacks("workloads take a list of names without ALL, and this provider passes none on", capability.Capabilities).
		Lacks("this provider passes none on", capability.Sysctls).
		Lacks("a workload has no restart policy: its containers always start again", capability.RunToCompletion, capability.ContainerRestartRules).
		Lacks("a workload has neither files nor empty directories: use variables", capability.EmptyDir, capability.MemoryEmptyDir, capability.ObjectVolumes, capability.SubPath, capability.EnvFiles).
		Lacks("a workload has no files: set automountServiceAccountToken to false", capability.TokenVolumes, capability.CertificateFiles).
		Lacks("the description does not say whether a volume outlives its workload", capability.PersistentVolume, capability.CSIVolumes, capability.OtherVolumes, capability.BlockDevices).
		Lacks("the console runs commands, and has no attach", capability.InteractiveContainers).
		Lacks("a workload that changes is deployed anew", capability.EphemeralContainers, capability.InPlaceResize)
}
