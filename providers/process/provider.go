// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

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
			return New(ctx, in, config)
		},
		Capabilities: func(path string) (capability.Declaration, error) {
			config, err := LoadConfig(path)
			return config.Capabilities(), err
		},
	}
}

// provider runs pods as processes of this machine.
type provider struct {
	*podruntime.Runtime
	runtime *Runtime
	in      cli.ProviderInput
}

// New returns the provider with a configuration that is in no file, and finds out how containers can be isolated.
func New(ctx context.Context, in cli.ProviderInput, config Config) (*provider, error) {
	r, err := Open(ctx, config, in.Node.Name, in.InternalIP)
	if err != nil {
		return nil, err
	}
	lacks, notes := declare(surroundings{isolation: r.isolation, noLimits: r.cgroups.why, selinux: hasSELinux(), network: r.network != nil})
	pods, err := podruntime.New(podruntime.Config{
		Runtime: r, Images: r.Images(), Node: in.Node, Recorder: in.Recorder,
		Root: filepath.Join(r.config.StateDir, "pods"), LogRoot: filepath.Join(r.config.StateDir, "logs"),
		ClusterDNS: config.ClusterDNS, ClusterDomain: in.KubeClusterDomain, HostPaths: config.HostPaths, Privileged: config.Privileged,
		Lacks: lacks, Notes: notes,
	})
	if err != nil {
		r.lock.Close()
		return nil, fmt.Errorf("process provider: %w", err)
	}
	return &provider{Runtime: pods, runtime: r, in: in}, nil
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
