// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"fmt"
	"time"

	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
)

// Capabilities returns what pods get from a provider with this configuration.
func (c Config) Capabilities() capability.Declaration {
	return podruntime.Capabilities(podruntime.Config{HostPaths: c.HostPaths, Privileged: c.Privileged, Notes: notes})
}

// notes are on what depends on the runtime and the kernel.
var notes = map[capability.Feature]string{
	capability.ImageVolumes: "the runtime must have them: containerd has since 2.1",
	capability.SELinux:      "where the kernel and the runtime have it",
	capability.AppArmor:     "where the kernel and the runtime have it",
	capability.RuntimeClass: "those that the provider's configuration names under runtimeHandlers",
	capability.HostPorts:    "the runtime's network must have the plugin portmap",
}

// versionTimeout is how long the runtime may take to tell its version before the node starts.
const versionTimeout = 5 * time.Second

// imageVolumesSince is the first version of each runtime that has image volumes.
var imageVolumesSince = map[string]string{"containerd": "2.1.0", "cri-o": "1.31.0"}

// lacks returns what the runtime is too old for: it would make containers without it, or fail late. A runtime
// that does not answer yet, or is none of those known here, is believed to have everything.
func lacks(client *Client) map[capability.Feature]string {
	ctx, cancel := context.WithTimeout(context.Background(), versionTimeout)
	defer cancel()
	runtime, err := client.Version(ctx, "v1")
	if err != nil {
		return nil // the node is not ready until it answers
	}
	since, known := imageVolumesSince[runtime.RuntimeName]
	has, err := utilversion.ParseGeneric(runtime.RuntimeVersion) // distributions add to it
	if !known || err != nil || has.AtLeast(utilversion.MustParseGeneric(since)) {
		return nil
	}
	return map[capability.Feature]string{capability.ImageVolumes: fmt.Sprintf(
		"%s %s has no image volumes, which came with %s", runtime.RuntimeName, has, since)}
}
