// SPDX-License-Identifier: Apache-2.0

package admiralty

import (
	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

// Capabilities returns the features of pods with this configuration.
func (Config) Capabilities() capability.Declaration {
	return remotecluster.Capabilities().Lacks("claims are not taken to the target cluster", capability.PersistentVolume)
}
