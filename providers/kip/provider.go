// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/cell"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/delivery"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
)

//go:embed README.md
var readme string

// Provider returns the provider kip.
func Provider() cli.Provider {
	return cli.Provider{
		Name: "kip", Readme: readme,
		New: func(ctx context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
			config, err := LoadConfig(in.ConfigPath)
			if err == nil {
				config, err = config.complete()
			}
			if err != nil {
				return nil, err
			}
			cloud, at, err := config.open(ctx)
			if err != nil {
				return nil, fmt.Errorf("kip provider: %w", err)
			}
			authority, made, err := openAuthority(config.AuthorityFile)
			if err != nil {
				return nil, fmt.Errorf("kip provider: %w", err)
			}
			d := newDriver(in, config, cloud, authority, at)
			d.newKey = made
			return &provider{d.kit, d}, nil
		},
		Capabilities: func(path string) (capability.Declaration, error) {
			config, err := LoadConfig(path)
			return config.Capabilities(), err
		},
		Check: func(path string) (func(*corev1.Pod) error, error) {
			config, err := LoadConfig(path)
			config, _ = config.complete() // the node reports missing fields
			return config.check, err
		},
	}
}

// provider is the provider of the kit that also reads EndpointSlices.
type provider struct {
	*service.Provider[instance]
	driver *driver
}

var _ nodeutil.EndpointSlicesUser = (*provider)(nil)

// UsesEndpointSlices implements nodeutil.EndpointSlicesUser.
func (p *provider) UsesEndpointSlices() bool { return p.driver.config.Services }

// UseEndpointSlices implements nodeutil.EndpointSlicesUser.
func (p *provider) UseEndpointSlices(l discoverylisters.EndpointSliceLister) {
	p.driver.mu.Lock()
	defer p.driver.mu.Unlock()
	p.driver.slices = l
	p.driver.nudge()
}

// newDriver returns a driver with its provider. The configuration must be complete.
func newDriver(in cli.ProviderInput, config Config, cloud machine.Driver, authority *cell.Authority, at pace) *driver {
	owner := identity.Owner{Cluster: config.ClusterName, Node: in.Node.Name}
	d := &driver{
		config: config, in: in, owner: owner, cloud: cloud, authority: authority, at: at, wake: make(chan struct{}, 1), heard: make(chan struct{}, 1),
		dial: func(token, address string, allowed func(image string) bool) agent {
			c := authority.Client(token, address)
			c.ServeImages(podjob.PullImage, allowed)
			return c
		},
		cells: map[string]*cellState{}, over: map[types.UID]instance{}, asking: map[string]asking{}, scarce: map[scarcity]time.Time{},
	}
	if ssh := config.SSH; ssh != nil {
		d.deliver = func(ctx context.Context, token, host string) error {
			return delivery.Deliver(ctx, *ssh, d.sshKeys(token), host)
		}
	}
	d.kit = service.New(service.Config{
		Service: "the cloud", Runtime: "vk-cell://1", Owner: owner, Capabilities: config.Capabilities(), Capacity: config.Capacity, Pods: in.Pods, Listed: in.Listed,
		Again: service.AgainMakesAnother, SeenWithin: at.seen, EarlierWithin: at.earlier, Busy: at.busy, Rest: at.rest, LogsUnseen: true,
		Skips: func(*corev1.Volume) bool { return true }, // the agent writes volumes from the objects
	}, d)
	return d
}

var (
	_ service.Driver[instance]    = (*driver)(nil)
	_ service.Ender[instance]     = (*driver)(nil)
	_ service.Refuser             = (*driver)(nil)
	_ service.LogReader[instance] = (*driver)(nil)
	_ service.Executor[instance]  = (*driver)(nil)
	_ service.Attacher[instance]  = (*driver)(nil)
	_ service.Forwarder[instance] = (*driver)(nil)
	_ service.Measurer[instance]  = (*driver)(nil)
	_ service.Renewer[instance]   = (*driver)(nil)
	_ service.Updater[instance]   = (*driver)(nil)
	_ service.Remover             = (*driver)(nil)
	_ service.Worker              = (*driver)(nil)
)
