// SPDX-License-Identifier: Apache-2.0

package nomad

import "github.com/virtual-kubelet/virtual-kubelet/capability"

// Capabilities returns the features of a provider with this configuration. The create refuses a pod with
// features that only another driver of the node has.
func (c Config) Capabilities() capability.Declaration {
	d := capability.Only(capability.RunToCompletion, capability.HostPorts, capability.HostNetwork).
		Note("they start one by one, for which all but a single one need a shell", capability.InitContainers).
		Note("it starts before the main containers, and ends after them", capability.Sidecars).
		Note("memory alone: it may be used above the request where the scheduler of Nomad allows that", capability.ContainerLimits).
		Note("by this node, with a session of exec each time", capability.ExecProbes).
		Lacks("a task has no hooks of its own", capability.PostStartHooks, capability.PreStopHooks).
		Lacks("Nomad has no attach", capability.InteractiveContainers).
		Lacks("a job that changes is another allocation", capability.EphemeralContainers, capability.InPlaceResize).
		Lacks("Nomad restarts on success, on failure or never", capability.ContainerRestartRules)
	if c.Network == NetworkBridge {
		d = d.Note("in the network of the pod, not with hostNetwork", capability.DNS)
		d = d.Note("", capability.HostPortMapping)
		d = d.Note("by this node, which must reach the addresses of pods", capability.NetworkProbes)
	} else {
		d = d.Note("by this node, of pods with hostNetwork", capability.NetworkProbes)
		d = d.Lacks("the node's pods are in the network of the clients", capability.HostPortMapping, capability.DNS)
	}
	if c.has(DriverExec, DriverDocker) {
		d = d.Note("as they were when the pod was created, but for tokens; no subPathExpr", capability.ObjectVolumes).
			Note("they are renewed while the pod runs", capability.TokenVolumes).
			Note("a directory of the allocation; with the driver exec a readOnly mount can be written", capability.EmptyDir).
			Note("", capability.SubPath)
	} else {
		d = d.Lacks("the driver raw_exec has no file system of its own", capability.ObjectVolumes, capability.TokenVolumes, capability.EmptyDir, capability.SubPath)
	}
	if c.has(DriverDocker) {
		d = d.Note("with the driver docker; runAsNonRoot with runAsUser", capability.RunAsUser).
			LacksFields("Nomad has no further groups", capability.RunAsUser, "supplementalGroups", "supplementalGroupsPolicy").
			Note("with the driver docker", capability.ReadOnlyRoot)
	}
	return d
}
