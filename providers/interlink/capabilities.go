// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"slices"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
)

// carried lists the features that the protocol can carry and every plugin has.
var carried = []capability.Feature{
	capability.RunToCompletion, capability.InitContainers, capability.ContainerLimits, capability.EmptyDir, capability.ObjectVolumes, capability.TokenVolumes,
}

// Capabilities returns the features that a provider with this configuration gives to pods.
func (c Config) Capabilities() capability.Declaration {
	d := capability.Only(append(slices.Clone(carried), c.Features...)...)
	d = d.Note("sent once: a token is not renewed, and a file does not follow its object", capability.TokenVolumes, capability.ObjectVolumes)
	for feature, why := range never {
		d = d.Lacks(why, feature)
	}
	for _, feature := range capability.Features() {
		if !d.Has(feature) && never[feature] == "" {
			d = d.Lacks("plugins differ in it: add it to features of the configuration where the plugin has it", feature)
		}
	}
	return d
}
