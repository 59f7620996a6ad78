// SPDX-License-Identifier: Apache-2.0

package skeleton

import "github.com/virtual-kubelet/virtual-kubelet/capability"

// Capabilities returns the features that pods get from a provider with this configuration, beyond restarted containers with images, commands and
// environments. A pod that needs more is refused before it reaches the driver, with the path of its field and the reason.
//
// FILL(capabilities): list every feature of your service in Only; the contract then requires a check that proves it. For every other feature, write
// the reason why it is missing, as a message to users.
func (Config) Capabilities() capability.Declaration {
	return capability.Only(capability.RunToCompletion).
		Lacks("skeleton has no volumes: set automountServiceAccountToken to false, and take configuration from the environment",
			capability.EmptyDir, capability.MemoryEmptyDir, capability.ObjectVolumes, capability.TokenVolumes,
			capability.HostPath, capability.PersistentVolume, capability.CSIVolumes, capability.OtherVolumes).
		Lacks("skeleton runs one set of containers, all at once", capability.InitContainers, capability.Sidecars)
}
