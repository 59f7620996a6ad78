// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
)

// Capabilities returns the features of a provider with this configuration.
func (c Config) Capabilities() capability.Declaration {
	return podruntime.Capabilities(podruntime.Config{HostPaths: c.HostPaths, LocalVolumes: c.LocalVolumes, ProvisionVolumes: c.ProvisionVolumes, Privileged: c.Privileged, Notes: notes})
}

// checkPod returns an error for a pod that CreatePod would refuse.
func (c Config) checkPod(pod *corev1.Pod) error {
	return podruntime.Check(podruntime.Config{HostPaths: c.HostPaths, LocalVolumes: c.LocalVolumes, ProvisionVolumes: c.ProvisionVolumes}, pod)
}

// notes are about features that depend on the runtime and the kernel.
var notes = map[capability.Feature]string{
	capability.ImageVolumes:    "the runtime must have them: containerd has since 2.1",
	capability.StopSignal:      "the runtime must know of it: containerd does since 2.3, CRI-O since 1.33",
	capability.SELinux:         "where the kernel and the runtime have it",
	capability.AppArmor:        "where the kernel and the runtime have it",
	capability.RuntimeClass:    "those that the provider's configuration names under runtimeHandlers",
	capability.HostPorts:       "the runtime's network must have the plugin portmap",
	capability.HostPortMapping: "the runtime's network must have the plugin portmap",
}

// versionTimeout is the timeout for the version of the runtime at the start.
const versionTimeout = 5 * time.Second

// since has the first version of each runtime that supports a feature. Older versions ignore the request.
var since = map[capability.Feature]struct {
	what     string
	versions map[string]string
}{
	capability.ImageVolumes: {"image volumes", map[string]string{"containerd": "2.1.0", "cri-o": "1.31.0"}},
	capability.StopSignal:   {"stop signals of pods", map[string]string{"containerd": "2.3.0", "cri-o": "1.33.0"}},
}

// missingFeatures returns the features that the runtime ignores, with reasons.
func missingFeatures(ctx context.Context, client *Client) map[capability.Feature]string {
	all := map[capability.Feature]string{}
	maps.Copy(all, tooOld(ctx, client))
	maps.Copy(all, noHostPorts(ctx, client))
	return all
}

// tooOld returns the features that this version of the runtime does not support. It returns none if the runtime
// does not answer or is unknown.
func tooOld(ctx context.Context, client *Client) map[capability.Feature]string {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	runtime, err := client.Version(ctx, "v1")
	if err != nil {
		return nil // the node is not ready until the runtime answers
	}
	has, err := utilversion.ParseGeneric(runtime.RuntimeVersion) // distributions append text to the version
	if err != nil {
		return nil
	}
	lacks := map[capability.Feature]string{}
	for f, s := range since {
		if v, known := s.versions[runtime.RuntimeName]; known && !has.AtLeast(utilversion.MustParseGeneric(v)) {
			lacks[f] = fmt.Sprintf("%s %s has no %s, which came with %s", runtime.RuntimeName, has, s.what, v)
		}
	}
	return lacks
}
