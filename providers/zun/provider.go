// SPDX-License-Identifier: Apache-2.0

package zun

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/podruntime/probe"
	kitconfig "github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/lookups"
)

//go:embed README.md
var readme string

// Provider returns the provider zun.
func Provider() cli.Provider {
	return cli.Provider{
		Name: "zun", Readme: readme, Aliases: []string{"openstack"},
		New: func(ctx context.Context, in cli.ProviderInput) (nodeutil.Provider, error) {
			config, err := LoadConfig(in.ConfigPath)
			if err != nil {
				return nil, err
			}
			if config, err = config.complete(); err != nil {
				return nil, err
			}
			next, err := config.transport(ctx)
			if err != nil {
				return nil, fmt.Errorf("zun provider: %w", err)
			}
			p, _ := newProvider(in, config, next)
			return p, nil
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

// transport returns the transport of requests.
func (c Config) transport(ctx context.Context) (*http.Transport, error) {
	next, err := kitconfig.Transport(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("caFile: %w", err)
	}
	_, _, secure, err := c.credentials(ctx)
	if err != nil {
		return nil, fmt.Errorf("cloud %q: %w", c.Cloud, err)
	}
	if secure != nil {
		next.TLSClientConfig = secure
	}
	return next, nil
}

// restEvery is the time between two lists at rest. With capsules it is twice as long, because capsules have a list of
// their own.
const restEvery = 5 * time.Second

// newProvider returns the provider of a complete configuration. Requests go through next.
func newProvider(in cli.ProviderInput, config Config, next http.RoundTripper) (*service.Provider[instance], *driver) {
	owner := identity.Owner{Cluster: config.ClusterName, Node: in.NodeName}
	d := &driver{
		config: config, mapping: mapping{config: config, owner: owner}, owner: owner,
		stopped: map[string]time.Time{}, removed: map[string]string{}, starts: map[string]int32{}, registered: map[string]bool{}, shells: map[string]bool{},
		client: &client{config: config, http: http.Client{
			Transport: next, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // it would take the token along
		}},
	}
	d.lookups = lookups.New(config.StatusRequests, time.Nanosecond, d.look) // a list has asked for a pause
	rest := cmp.Or(config.rest, restEvery)
	if config.Capsules && config.rest == 0 {
		rest *= 2
	}
	d.kit = service.New(service.Config{
		Service: "Zun", Owner: owner, Capabilities: config.Capabilities(), Capacity: config.Capacity, Pods: in.Pods, Listed: in.Listed,
		Again: service.AgainMakesAnother, SeenWithin: cmp.Or(config.seenWithin, seenWithin), EarlierWithin: cmp.Or(config.earlierWithin, earlierWithin), Backoff: config.backoff,
		Busy: config.busy, Rest: rest, Idle: config.idle, Probes: probe.Make, Recorder: in.Recorder,
	}, d)
	return d.kit, d
}
