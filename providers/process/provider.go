// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime"
)

// Provider returns the provider process.
func Provider() cli.Provider {
	return cli.Provider{
		Name: "process",
		New: func(ctx context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
			config, err := LoadConfig(in.ConfigPath)
			if err != nil {
				return nil, err
			}
			n := Node{Node: in.Node, Recorder: in.Recorder, InternalIP: in.InternalIP, ClusterDomain: in.KubeClusterDomain, DaemonPort: in.DaemonPort}
			return New(ctx, n, config)
		},
		Capabilities: func(path string) (capability.Declaration, error) {
			config, err := LoadConfig(path)
			return config.Capabilities(), err
		},
	}
}

// Node is the node that a provider is for.
type Node struct {
	// Node is the node as it will be registered.
	Node *corev1.Node
	// Recorder gets the events about pods.
	Recorder record.EventRecorder
	// InternalIP is the address of the node, which is that of pods without one of their own.
	InternalIP string
	// ClusterDomain is the domain of the cluster's DNS.
	ClusterDomain string
	// DaemonPort is the port of the kubelet API; 0 for none.
	DaemonPort int32
}

// provider runs pods as processes of this machine.
type provider struct {
	*podruntime.Runtime
	runtime *Runtime
	node    Node
}

// New returns the provider, and finds out how containers can be isolated.
func New(ctx context.Context, n Node, config Config) (*provider, error) {
	r, err := Open(ctx, config, n.Node.Name, n.InternalIP)
	if err != nil {
		return nil, err
	}
	lacks, notes := declare(surroundings{isolation: r.isolation, noLimits: r.cgroups.why, selinux: hasSELinux(), network: r.network != nil})
	pods, err := podruntime.New(podruntime.Config{
		Runtime: r, Images: r.Images(), Node: n.Node, Recorder: n.Recorder,
		Root: filepath.Join(r.config.StateDir, "pods"), LogRoot: filepath.Join(r.config.StateDir, "logs"),
		ClusterDNS: config.ClusterDNS, ClusterDomain: n.ClusterDomain, HostPaths: config.HostPaths, Privileged: config.Privileged,
		Lacks: lacks, Notes: notes,
	})
	if err != nil {
		r.lock.Close()
		return nil, fmt.Errorf("process provider: %w", err)
	}
	return &provider{Runtime: pods, runtime: r, node: n}, nil
}

// RunInBackground works until ctx ends. Containers go on.
func (p *provider) RunInBackground(ctx context.Context) error {
	watched := make(chan error, 1)
	ended, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { watched <- p.runtime.Run(ended) }()
	err := p.Runtime.RunInBackground(ctx)
	cancel()
	return errors.Join(err, <-watched)
}
