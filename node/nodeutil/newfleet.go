// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/virtual-kubelet/virtual-kubelet/internal/fanout"
	"github.com/virtual-kubelet/virtual-kubelet/internal/replicas"
)

// maxGroupName leaves room for the suffixes that make the names of a group and of its members unique.
const maxGroupName = 40

// NewFleet returns the nodes with the given names, each with a provider of its own. newProvider is called once
// for each node. The name is in ProviderConfig.Node, where newProvider also writes the special properties of the
// node.
//
// opts are applied once, to a shared configuration of all nodes. Each node starts from its NodeSpec, which must have no name. KubeAPIQPS
// and KubeAPIBurst apply to all nodes together. With ShareNodes, a node and its provider are created each time this process takes over the
// node. Like NewNode it starts no goroutine and sends no request.
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
		base: b, names: names, places: make(chan struct{}, startingNodes),
		pods:  fanout.NewPods(boundPods(b.clients.watches), names, b.common.InformerResyncPeriod),
		watch: fanout.NewNodes(b.clients.nodes, allNodes(b.clients.watches), names),
		life:  newLifetime(),
	}
	f.make = func(name string) (*Node, error) {
		n, err := b.newNode(name, b.configFor(name), f.pods.View(name), f.watch, f.group, newProvider)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", name, err)
		}
		n.health, n.inFleet = n.isWell, true
		return n, nil
	}
	var nodes []*Node
	if cfg.ShareNodes != "" {
		if f.group, err = b.newGroup(cfg.ShareNodes, names); err != nil {
			return nil, err
		}
		names = nil // shared nodes are created when this process takes them over
	}
	for _, name := range names {
		n, err := f.make(name)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	f.hold(nodes)
	f.serveRoutes()
	return f, nil
}

// newGroup returns this process as a member of the group of processes with the same nodes. Processes with other nodes form another group,
// even under the same name: otherwise a group could assign nodes to members that do not have them.
func (b *base) newGroup(name string, nodes []string) (*replicas.Group, error) {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 || len(name) > maxGroupName {
		return nil, fmt.Errorf("ShareNodes %q: want a name of at most %d small letters, digits and hyphens", name, maxGroupName)
	}
	if b.common.DisableLeaseGuard {
		return nil, errors.New("ShareNodes: nodes are shared by their leases, but DisableLeaseGuard is set")
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "a host without a name" // "" would mean that the process has left
	}
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(nodes)), "\n")))
	name += "-" + hex.EncodeToString(sum[:4])
	return replicas.New(b.clients.leases, name, name+"-"+rand.String(10), host), nil
}

// configFor returns the configuration of a node of a fleet.
func (b *base) configFor(name string) NodeConfig {
	cfg := b.common
	b.common.NodeSpec.DeepCopyInto(&cfg.NodeSpec)
	cfg.NodeSpec.Name = name
	if host, has := cfg.NodeSpec.Labels[corev1.LabelHostname]; has && host == "" {
		cfg.NodeSpec.Labels[corev1.LabelHostname] = name
	}
	return cfg
}
