// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// Capabilities declares the features that pods get. The declaration is the same for all configurations.
func (Config) Capabilities() capability.Declaration {
	lacks, notes := podjob.Lacks()
	delete(lacks, capability.DNS) // the agent writes the DNS settings of pods
	delete(notes, capability.RunAsUser)
	delete(notes, capability.ContainerLimits)
	return podruntime.Capabilities(podruntime.Config{Lacks: lacks, Notes: notes})
}
