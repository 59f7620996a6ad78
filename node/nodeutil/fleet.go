// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/fanout"
)

// Fleet is many virtual nodes in one process. Make one with NewFleet and start it, once,
// with Run.
//
// Its nodes share connections and their limits, one watch of pods, one of nodes and one
// of services, and the kubelet's server; each has a provider, a lease and
// controllers of its own. The identity must be allowed to act for all of them: that of
// one node (system:node:NAME) is not, a service account with a role is. See
// docs/decisions/0009-many-nodes.md.
type Fleet struct {
	*base
	names  []string
	nodes  []*Node
	byName map[string]*Node
	byHost map[string]*Node // by names and addresses that only one node has
	pods   *fanout.Pods
	watch  *fanout.Nodes
	common http.Handler // of what is the same for all nodes; nil without a server

	ready chan struct{}
	done  chan struct{}

	mu      sync.Mutex
	started bool  // guarded by mu
	err     error // guarded by mu
}

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

// Nodes returns the nodes, in the order of their names. They run with the fleet; their
// own Run is an error.
func (f *Fleet) Nodes() []*Node { return append([]*Node(nil), f.nodes...) }

// Node returns the node with the name, nil if there is none.
func (f *Fleet) Node(name string) *Node { return f.byName[name] }

// Ready returns a channel that is closed when all nodes are ready.
func (f *Fleet) Ready() <-chan struct{} { return f.ready }

// Done returns a channel that is closed when Run has ended.
func (f *Fleet) Done() <-chan struct{} { return f.done }

// Err returns what Run returned, and nil before.
func (f *Fleet) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// WaitReady waits until all nodes are ready, Run has ended, ctx has ended or timeout has
// passed, and returns nil only in the first case. A timeout of 0 or less waits for as
// long as ctx lives.
func (f *Fleet) WaitReady(ctx context.Context, timeout time.Duration) error {
	return waitReady(ctx, timeout, f)
}

// isWell answers /healthz of the whole process: all its nodes are well.
func (f *Fleet) isWell(ctx context.Context) error {
	for _, n := range f.nodes {
		if err := n.isWell(ctx); err != nil {
			return fmt.Errorf("node %s: %w", n.name, err)
		}
	}
	return nil
}

// isAlive answers /livez of the whole process.
func (f *Fleet) isAlive(ctx context.Context) error {
	for _, n := range f.nodes {
		if err := n.isAlive(ctx); err != nil {
			return fmt.Errorf("node %s: %w", n.name, err)
		}
	}
	return nil
}
