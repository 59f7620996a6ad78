// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// Capabilities returns the features of pods.
func (c Config) Capabilities() capability.Declaration {
	lacks, notes := podjob.Lacks()
	return podruntime.Capabilities(podruntime.Config{Lacks: lacks, Notes: notes})
}
