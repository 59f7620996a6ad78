// SPDX-License-Identifier: Apache-2.0

package skeleton

import "github.com/virtual-kubelet/virtual-kubelet/capability"

// Capabilities returns what pods get from a provider with this configuration, beyond containers with images, commands and environments that are
// restarted. A pod that asks for more is refused, with the path of its field and the reason, before it comes to the driver.
//
// FILL(capabilities): name every feature that your service has in Only; the contract then asks for a check that proves it. Say of
// the others why they are not there, as users should read it.
func (Config) Capabilities() capability.Declaration {
	return capability.Only(capability.RunToCompletion).
		Lacks("skeleton has no volumes: set automountServiceAccountToken to false, and take configuration from the environment",
			capability.EmptyDir, capability.MemoryEmptyDir, capability.ObjectVolumes, capability.TokenVolumes,
			capability.HostPath, capability.PersistentVolume, capability.CSIVolumes, capability.OtherVolumes).
		Lacks("skeleton runs one set of containers, all at once", capability.InitContainers, capability.Sidecars)
}
