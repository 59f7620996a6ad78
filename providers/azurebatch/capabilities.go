// SPDX-License-Identifier: Apache-2.0

package azurebatch

import (
	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// Capabilities returns the features of pods. They are the same for all configurations.
func (Config) Capabilities() capability.Declaration {
	lacks, notes := podjob.Lacks()
	notes[capability.ContainerLimits] = "no cgroup keeps them: the pod takes as many slots of a machine as its share of it"
	return podruntime.Capabilities(podruntime.Config{Lacks: lacks, Notes: notes})
}
