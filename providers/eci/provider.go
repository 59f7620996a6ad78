// SPDX-License-Identifier: Apache-2.0

// Package eci is a provider that runs pods in Alibaba Cloud Elastic Container Instance, by its API of
// 2018-08-08, without an SDK.
//
// The guarantee: a pod is one container group, even after a repeated create, and a restart of the provider
// writes nothing. Everything in a pod that a group cannot have is refused with its field. A failed list is never
// an empty list, and an exit code that ECI does not report is unknown.
//
// Note: the states of groups have no tags. So the provider recognizes a group from before a restart by
// its name, which is the hash of its pod, or by a second request.
package eci

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
	probes "github.com/virtual-kubelet/virtual-kubelet/podruntime/probe"
	kitconfig "github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/configured"
)

//go:embed README.md
var readme string

// Provider returns the provider eci.
func Provider() cli.Provider {
	return configured.Provider(cli.Provider{Name: "eci", Readme: readme, Aliases: []string{"alibabacloud", "alicloud"}}, configured.Steps[Config]{
		Load: LoadConfig, Complete: Config.complete, Capabilities: Config.Capabilities,
		New: func(_ context.Context, in cli.ProviderInput, config Config) (nodeutil.Provider, error) {
			next, err := kitconfig.Transport(config.CAFile)
			if err != nil {
				return nil, fmt.Errorf("eci provider: caFile: %w", err)
			}
			p, _ := newProvider(in, config, next)
			return p, nil
		},
		Check: func(config Config) func(*corev1.Pod) error { return mapping{config: config}.check },
	})
}

// seenWithin is how long ECI may take until its lists show a group.
const seenWithin = 2 * time.Minute

// newProvider returns the provider of a complete configuration. Requests go through next.
func newProvider(in cli.ProviderInput, config Config, next *http.Transport) (*service.Provider[instance], *driver) {
	owner := identity.Owner{Cluster: config.ClusterName, Node: in.NodeName}
	d := &driver{
		config: config, mapping: mapping{config: config, owner: owner}, pods: in.Pods,
		client: newClient(config.Endpoint, config.Region, next, config.keys(next, config.clock()), config.clock()),
	}
	if next.TLSClientConfig != nil {
		d.roots = next.TLSClientConfig.RootCAs
	}
	d.groups = newGroups(d.client, owner, d.hasInits)
	d.groups.inCluster = d.running
	d.kit = service.New(service.Config{
		Service: "ECI", Runtime: "eci://" + apiVersion, Owner: owner, Capabilities: config.Capabilities(), Capacity: config.Capacity, Pods: in.Pods, Listed: in.Listed,
		Again: service.AgainReturnsFirst, Claims: true,
		Probes: probes.Make, Recorder: in.Recorder, ExecProbeEvery: config.ExecProbeEvery.Duration, SeenWithin: cmp.Or(config.seenWithin, seenWithin), Busy: config.busy, Rest: config.rest, Idle: config.idle,
		Instead: map[service.Request]string{service.Attach: "use exec or logs", service.PortForward: "reach the pod by its address in the VPC"},
	}, d)
	return d.kit, d
}
