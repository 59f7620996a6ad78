// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

// Capabilities returns the features that a provider with this configuration gives to pods.
func (c Config) Capabilities() capability.Declaration { return remotecluster.Capabilities() }
