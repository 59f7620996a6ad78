// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
)

//go:embed README.md
var readme string

// Provider returns the provider named cri.
func Provider() cli.Provider {
	return cli.Provider{
		Name:   "cri",
		Readme: readme,
		New: func(ctx context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
			config, err := LoadConfig(in.ConfigPath)
			if err != nil {
				return nil, err
			}
			return New(ctx, in, config)
		},
		Capabilities: func(path string) (capability.Declaration, error) {
			config, err := LoadConfig(path)
			return config.Capabilities(), err
		},
		Check: func(path string) (func(*corev1.Pod) error, error) {
			config, err := LoadConfig(path)
			return config.checkPod, err
		},
	}
}

var (
	_ nodeutil.Provider     = (*provider)(nil)
	_ node.PodNotifier      = (*provider)(nil)
	_ node.PodObjectsUser   = (*provider)(nil)
	_ node.BackgroundRunner = (*provider)(nil)
	_ node.NodeProvider     = (*provider)(nil)
	_ cli.NodeConfigurer    = (*provider)(nil)
)

// provider runs pods in a container runtime.
type provider struct {
	*podruntime.Runtime
	client *Client
}

// New returns a provider with this configuration. The container runtime need not run yet: until it does, the node
// is not ready.
func New(ctx context.Context, in cli.ProviderInput, c Config) (*provider, error) {
	c, err := c.completeConfig()
	if err != nil {
		return nil, err
	}
	client, err := Connect(c.Endpoint)
	if err != nil {
		return nil, err
	}
	pods, err := podruntime.New(podruntime.Config{
		Runtime: client, Images: client, Node: in.Node, Recorder: in.Recorder,
		Root: c.Root, LogRoot: c.LogRoot, ClusterDNS: c.ClusterDNS, ClusterDomain: cmp.Or(c.ClusterDomain, in.KubeClusterDomain),
		HostPaths: c.HostPaths, LocalVolumes: c.LocalVolumes, ProvisionVolumes: c.ProvisionVolumes, CgroupParent: c.CgroupParent, PodPidsLimit: c.PodPidsLimit, Privileged: c.Privileged, ImageGC: c.ImageGC, EvictionHard: c.EvictionHard,
		Capacity: c.Capacity, SystemReserved: c.SystemReserved, KubeReserved: c.KubeReserved,
		AllowedUnsafeSysctls: c.AllowedUnsafeSysctls, RuntimeHandler: c.runtimeHandler, Lacks: missingFeatures(ctx, client), Notes: notes,
	})
	if err != nil {
		_ = client.Close(context.Background()) // no call was made yet
		return nil, fmt.Errorf("make the provider cri: %w", err)
	}
	return &provider{Runtime: pods, client: client}, nil
}

// RunInBackground implements node.BackgroundRunner. It closes the connection at the end.
func (p *provider) RunInBackground(ctx context.Context) error {
	defer p.client.Close(context.Background())
	return p.Runtime.RunInBackground(ctx)
}

// runtimeHandler returns the handler of the runtime for a RuntimeClass.
func (c Config) runtimeHandler(_ context.Context, class string) (string, error) {
	if handler, known := c.RuntimeHandlers[class]; known {
		return handler, nil
	}
	return "", fmt.Errorf("no handler for RuntimeClass %q: name one under runtimeHandlers in the configuration of the provider cri", class)
}
