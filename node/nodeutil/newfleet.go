// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/fanout"
)

// NewFleet returns the nodes with the given names, each of which runs its pods on a
// provider of its own. newProvider is called once for each; the name is that of
// ProviderConfig.Node, in which it also writes what is special about the node.
//
// opts are applied once, to a configuration that all nodes share; its NodeSpec, which
// must have no name, is what each node begins with. KubeAPIQPS and KubeAPIBurst are for
// all nodes together. Like NewNode it starts no goroutine and sends no request.
func NewFleet(names []string, newProvider NewProviderFunc, opts ...NodeOpt) (*Fleet, error) {
	f, err := newFleet(names, newProvider, opts)
	if err != nil {
		return nil, fmt.Errorf("make %d nodes: %w", len(names), err)
	}
	return f, nil
}

func newFleet(names []string, newProvider NewProviderFunc, opts []NodeOpt) (*Fleet, error) {
	if newProvider == nil {
		return nil, errNoProviderFunc
	}
	if err := checkNames(names); err != nil {
		return nil, err
	}
	cfg, fromEnv := defaultConfig("")
	if err := configure(&cfg, opts); err != nil {
		return nil, err
	}
	if name := cfg.NodeSpec.Name; name != "" {
		return nil, fmt.Errorf("the node is named %q in NodeSpec, but each node of a fleet has a name of its own", name)
	}
	if cfg.bootstrap != nil || cfg.servingRequests != nil {
		return nil, errors.New("certificates are asked for by one node, for its own identity; give a fleet a service account, and a serving certificate in files")
	}
	cfg.fleet = len(names)
	b, err := newBase(names[0], cfg, fromEnv)
	if err != nil {
		return nil, err
	}
	f := &Fleet{
		base: b, names: names, byName: make(map[string]*Node, len(names)),
		pods:  fanout.NewPods(boundPods(b.clients.watches), names, b.common.InformerResyncPeriod),
		watch: fanout.NewNodes(b.clients.nodes, allNodes(b.clients.watches), names),
		ready: make(chan struct{}), done: make(chan struct{}),
	}
	for _, name := range names {
		n, err := b.newNode(name, b.configFor(name), f.pods.View(name), f.watch, newProvider)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", name, err)
		}
		n.health, n.inFleet = n.isWell, true
		f.nodes = append(f.nodes, n)
		f.byName[name] = n
	}
	f.byHost = hostsOf(f.nodes)
	f.serveRoutes()
	return f, nil
}

// configFor returns the configuration of one of many nodes.
func (b *base) configFor(name string) NodeConfig {
	cfg := b.common
	b.common.NodeSpec.DeepCopyInto(&cfg.NodeSpec)
	cfg.NodeSpec.Name = name
	if host, has := cfg.NodeSpec.Labels[corev1.LabelHostname]; has && host == "" {
		cfg.NodeSpec.Labels[corev1.LabelHostname] = name
	}
	return cfg
}
