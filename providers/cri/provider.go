// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
)

// Provider runs pods in a container runtime.
type Provider struct {
	*podruntime.Runtime
	client   *Client
	capacity corev1.ResourceList
}

// New makes the provider of the node, which is as it will be registered; events about its pods go to the
// recorder. The container runtime need not run yet: until it does, the node is not ready.
func New(node *corev1.Node, recorder record.EventRecorder, c Config) (*Provider, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	client, err := Connect(c.Endpoint)
	if err != nil {
		return nil, err
	}
	pods, err := podruntime.New(podruntime.Config{
		Runtime: client, Images: client, Node: node, Recorder: recorder,
		Root: c.Root, LogRoot: c.LogRoot, ClusterDNS: c.ClusterDNS, ClusterDomain: c.ClusterDomain,
		HostPaths: c.HostPaths, CgroupParent: c.CgroupParent, Privileged: c.Privileged,
		RuntimeHandler: c.handler, Lacks: lacks(client), Notes: notes,
	})
	if err != nil {
		_ = client.Close(context.Background()) // nothing was called yet
		return nil, fmt.Errorf("make the provider cri: %w", err)
	}
	return &Provider{Runtime: pods, client: client, capacity: c.Capacity}, nil
}

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

// RunInBackground implements node.BackgroundRunner. The connection ends with it.
func (p *Provider) RunInBackground(ctx context.Context) error {
	defer p.client.Close(context.Background())
	return p.Runtime.RunInBackground(ctx)
}

// handler is the runtime's name for a class.
func (c Config) handler(_ context.Context, class string) (string, error) {
	if handler, known := c.RuntimeHandlers[class]; known {
		return handler, nil
	}
	return "", fmt.Errorf("no handler for RuntimeClass %q: name one under runtimeHandlers in the configuration of the provider cri", class)
}
