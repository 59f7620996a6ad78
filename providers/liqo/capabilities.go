// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

// Capabilities returns the features of pods with this configuration.
func (c Config) Capabilities() capability.Declaration { return remotecluster.Capabilities() }
