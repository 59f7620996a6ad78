// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// Provider returns the provider fargate.
func Provider() cli.Provider {
	return cli.Provider{
		Name: "fargate", Aliases: []string{"aws"},
		New: func(ctx context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
			config, err := LoadConfig(in.ConfigPath)
			if err != nil {
				return nil, err
			}
			if config, err = config.complete(); err != nil {
				return nil, err
			}
			d, err := newDriver(ctx, in, config, service.Config{})
			if err != nil {
				return nil, err
			}
			return d.kit, nil
		},
		Capabilities: func(path string) (capability.Declaration, error) {
			config, err := LoadConfig(path)
			return config.Capabilities(), err
		},
		Check: func(path string) (func(*corev1.Pod) error, error) {
			config, err := LoadConfig(path)
			config, _ = config.complete() // what is missing there is for the node to say
			return mapping{config: config}.check, err
		},
	}
}

// Work implements service.Worker.
func (d *driver) Work(ctx context.Context) {
	var beside sync.WaitGroup
	beside.Go(func() { d.prober.run(ctx, d.kit.Cache().Refresh) })
	if d.config.Queue != "" {
		d.listen(ctx)
	}
	beside.Wait()
}

// Close implements service.Closer.
func (d *driver) Close() { d.client.close() }
