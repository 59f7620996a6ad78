// SPDX-License-Identifier: Apache-2.0

// Package zun is a provider that runs pods as containers of OpenStack Zun, with API microversion 1.40.
//
// The guarantee: a pod is one container. The node restarts an ended container, with the back-off, the restart count and the exit code of the
// Kubernetes API. A pod with a setting that Zun does not support is refused, with the name of the field. An exit code that Zun does not report is
// unknown.
//
// Note: lists of Zun show the end of a container only after Zun's own check, once a minute. So the provider also reads single containers, as
// often as the configuration allows. Pods with several containers are capsules, which current clouds cannot run.
package zun

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/probe"
	kitconfig "github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/configured"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/lookups"
)

//go:embed README.md
var readme string

// Provider returns the provider zun.
func Provider() cli.Provider {
	return configured.Provider(cli.Provider{Name: "zun", Readme: readme, Aliases: []string{"openstack"}}, configured.Steps[Config]{
		Load: LoadConfig, Complete: Config.complete, Capabilities: Config.Capabilities,
		New: func(ctx context.Context, in cli.ProviderInput, config Config) (nodeutil.Provider, error) {
			next, err := config.openTransport(ctx)
			if err != nil {
				return nil, fmt.Errorf("zun provider: %w", err)
			}
			p, _ := newProvider(in, config, next)
			return p, nil
		},
		Check: func(config Config) func(*corev1.Pod) error { return mapping{config: config}.checkPod },
	})
}

// openTransport returns the transport of requests.
func (c Config) openTransport(ctx context.Context) (*http.Transport, error) {
	next, err := kitconfig.Transport(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("caFile: %w", err)
	}
	login, err := c.readLogin(ctx)
	if err != nil {
		return nil, fmt.Errorf("cloud %q: %w", c.Cloud, err)
	}
	if login.TLS != nil {
		next.TLSClientConfig = login.TLS
	}
	return next, nil
}

// busyEvery and restEvery are the times between two lists, while a pod starts or stops, and otherwise. With capsules, restEvery is twice as long,
// because capsules have a separate list.
const busyEvery, restEvery = 2 * time.Second, 5 * time.Second

// newProvider returns the provider of a complete configuration. Requests go through next.
func newProvider(in cli.ProviderInput, config Config, next http.RoundTripper) (*service.Provider[instance], *driver) {
	owner := identity.Owner{Cluster: config.ClusterName, Node: in.NodeName}
	client, seen, earlier := newClient(config, next), cmp.Or(config.seenWithin, seenWithin), cmp.Or(config.earlierWithin, earlierWithin)
	d := &driver{
		config: config, mapping: mapping{config: config, owner: owner}, owner: owner, client: client, logins: newLogins(client, owner, seen, earlier),
	}
	d.lookups = lookups.New(config.StatusRequests, 0, 0, d.readInstance) // lists already have an interval
	rest := cmp.Or(config.rest, restEvery)
	if config.Capsules && config.rest == 0 {
		rest *= 2
	}
	busy := cmp.Or(config.busy, busyEvery)
	d.kit = service.New(service.Config{
		Service: "Zun", Runtime: "zun://" + microversion, Owner: owner, Capabilities: config.Capabilities(), Capacity: config.Capacity, Pods: in.Pods, Listed: in.Listed,
		Again: service.AgainMakesAnother, SeenWithin: seen, EarlierWithin: earlier, Backoff: config.backoff,
		Busy: busy, Soon: busy, Rest: rest, Idle: config.idle, Probes: probe.Make, Recorder: in.Recorder,
	}, d)
	return d.kit, d
}
