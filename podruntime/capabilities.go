// SPDX-License-Identifier: Apache-2.0

package podruntime

import "github.com/virtual-kubelet/virtual-kubelet/capability"

// Capabilities returns what pods get from a Runtime with this configuration.
func Capabilities(cfg Config) capability.Declaration {
	d := capability.All().
		Lacks("this node has no volume plugins", capability.PersistentVolume, capability.CSIVolumes, capability.OtherVolumes, capability.BlockDevices).
		Lacks("this node does not ask for certificates for pods", capability.CertificateFiles).
		Lacks("this node mounts volumes without further options", capability.MountOptions).
		Lacks("this node prepares no devices", capability.ResourceClaims).
		Lacks("this node has limits for containers, not for pods as a whole", capability.PodResources).
		Lacks("this node hands out no user IDs to pods", capability.UserNamespaces).
		Note("without effect on Linux containers, as with a kubelet", capability.WindowsOptions)
	if len(cfg.HostPaths) == 0 {
		d = d.Lacks("no directory of the machine is open to pods; see hostPaths in the provider's configuration", capability.HostPath)
	}
	if !cfg.Privileged {
		d = d.Lacks("pods get no power over the machine; see privileged in the provider's configuration",
			capability.Privileged, capability.HostNetwork, capability.HostNamespaces, capability.UnmaskedProc)
	}
	for feature, why := range cfg.Lacks {
		d = d.Lacks(why, feature)
	}
	for feature, note := range cfg.Notes {
		if d.Has(feature) {
			d = d.Note(note, feature)
		}
	}
	return d
}

// Capabilities returns what pods get: those that ask for more are refused.
func (r *Runtime) Capabilities() capability.Declaration { return Capabilities(r.cfg) }

var _ capability.Declarer = (*Runtime)(nil)
