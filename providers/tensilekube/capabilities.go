// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

// Capabilities returns the features of pods with this configuration.
func (c Config) Capabilities() capability.Declaration {
	d := remotecluster.Capabilities()
	if len(c.StorageClasses) > 0 {
		return remotecluster.WithVolumes(d)
	}
	return d.Lacks("no storage class is named in storageClasses of the provider, so no claim is taken to the lower cluster", capability.PersistentVolume)
}
