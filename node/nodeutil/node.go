// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/internal/objects"
	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// Node is a whole virtual node. Make one with NewNode and start it, once, with Run.
type Node struct {
	// Set by NewNode, constant afterwards.
	name      string
	cfg       NodeConfig // NodeSpec is the node controller's once that runs
	clients   *clients
	informers []cache.SharedIndexInformer
	objects   *objects.Store
	events    *lateRecorder             // nil: the program records events
	server    *server                   // nil: none
	naive     *node.NaiveNodeProviderV2 // nil: the program has a NodeProvider
	pods      *node.PodController
	node      *node.NodeController

	ready chan struct{}
	done  chan struct{}

	mu      sync.Mutex
	started bool  // guarded by mu
	err     error // guarded by mu
}

// NewNode returns the node name that runs its pods on the provider which newProvider
// makes. It applies opts in order to the defaults of NodeConfig, and checks and
// connects everything; it starts no goroutine and sends no request.
func NewNode(name string, newProvider NewProviderFunc, opts ...NodeOpt) (*Node, error) {
	if name == "" {
		return nil, errors.New("make node: name is empty")
	}
	n, err := newNode(name, newProvider, opts)
	if err != nil {
		return nil, fmt.Errorf("make node %s: %w", name, err)
	}
	return n, nil
}

func newNode(name string, newProvider NewProviderFunc, opts []NodeOpt) (*Node, error) {
	if newProvider == nil {
		return nil, errors.New("no function to make the provider")
	}
	n := &Node{name: name, ready: make(chan struct{}), done: make(chan struct{})}
	if err := n.configure(opts); err != nil {
		return nil, err
	}

	pods := newPodInformer(n.clients.watches, name, n.cfg.InformerResyncPeriod)
	services := newServiceInformer(n.clients.watches, n.cfg.InformerResyncPeriod)
	n.informers = []cache.SharedIndexInformer{pods.Informer(), services.Informer()}
	n.objects = objects.NewStore(n.clients.main)

	provider, nodeProvider, err := newProvider(ProviderConfig{
		Pods:       pods.Lister(),
		ConfigMaps: n.objects.ConfigMaps().Lister(),
		Secrets:    n.objects.Secrets().Lister(),
		Services:   services.Lister(),
		Node:       &n.cfg.NodeSpec,
	})
	if err != nil {
		return nil, fmt.Errorf("make provider: %w", err)
	}
	switch {
	case provider == nil:
		return nil, errors.New("make provider: it is nil, and so is the error")
	case isNilPointer(provider):
		return nil, fmt.Errorf("make provider: it is a nil %T, and the error is nil", provider)
	case isNilPointer(nodeProvider):
		return nil, fmt.Errorf("make node provider: it is a nil %T; return a plain nil for a node that is always healthy", nodeProvider)
	case nodeProvider == nil:
		n.naive = node.NewNaiveNodeProvider()
		nodeProvider = n.naive
	}
	completeNode(&n.cfg.NodeSpec) // the provider may have written a status of its own
	if n.cfg.NodeSpec.Name != name {
		return nil, fmt.Errorf("the node is named %q in its spec; pods for it would never be seen", n.cfg.NodeSpec.Name)
	}
	if n.cfg.mux != nil {
		attachProvider(provider, &n.cfg, guardedMux{n.cfg.mux}, pods.Lister(), n)
	}

	capacity := &capacityWatch{NodeProvider: nodeProvider}
	capacity.observe(&n.cfg.NodeSpec)
	podConfig := node.PodControllerConfig{
		PodClient:                 n.clients.main.CoreV1(),
		PodInformer:               pods,
		EventRecorder:             n.recorder(),
		Provider:                  provider,
		ConfigMapInformer:         n.objects.ConfigMaps(),
		SecretInformer:            n.objects.Secrets(),
		ServiceInformer:           services,
		SkipDownwardAPIResolution: n.cfg.SkipDownwardAPIResolution,
		NodeName:                  name,
		OperatingSystem:           n.cfg.NodeSpec.Status.NodeInfo.OperatingSystem,
		NodeAllocatable:           capacity.allocatable,
	}
	for _, opt := range n.cfg.PodControllerConfigOpts {
		if err := opt(&podConfig); err != nil {
			return nil, fmt.Errorf("apply pod controller option: %w", err)
		}
	}
	if n.pods, err = node.NewPodController(podConfig); err != nil {
		return nil, fmt.Errorf("make pod controller: %w", err)
	}

	nodeOpts := []node.NodeControllerOpt{
		node.WithNodeEnableLeaseV1(n.clients.leases, node.DefaultLeaseDuration),
		node.WithNodeHealthyHook(n.pods.Kick), // pods that failed while the backend was down need not wait
	}
	if h := n.cfg.NodeStatusUpdateErrorHandler; h != nil {
		nodeOpts = append(nodeOpts, node.WithNodeStatusUpdateErrorHandler(h))
	}
	if n.node, err = node.NewNodeController(capacity, &n.cfg.NodeSpec, n.clients.nodes, nodeOpts...); err != nil {
		return nil, fmt.Errorf("make node controller: %w", err)
	}
	return n, nil
}

// configure applies opts and sets up what needs no provider: clients and server.
func (n *Node) configure(opts []NodeOpt) error {
	cfg, fromEnv := defaultConfig(n.name)
	for _, opt := range opts {
		if err := opt(&cfg); err != nil {
			return fmt.Errorf("apply option: %w", err)
		}
	}
	if err := cfg.complete(n.name); err != nil {
		return err
	}
	var err error
	if n.clients, err = connect(&cfg, fromEnv); err != nil {
		return err
	}
	cfg.Client = n.clients.main
	if n.server, err = newServer(&cfg, n.clients.main, n.name); err != nil {
		return err
	}
	if n.server != nil {
		completePort(&cfg.NodeSpec, cfg.HTTPListenAddr)
	}
	n.cfg = cfg
	return nil
}

// recorder returns the program's recorder, or one that works while Run does.
func (n *Node) recorder() record.EventRecorder {
	if n.cfg.EventRecorder != nil {
		return n.cfg.EventRecorder
	}
	n.events = &lateRecorder{component: n.name + "/pod-controller"}
	return n.events
}

// listenPort makes the node name the port that the system has chosen.
func (n *Node) listenPort(addr net.Addr) {
	completePort(&n.cfg.NodeSpec, addr.String())
}

// PodController returns the pod controller of the node.
func (n *Node) PodController() *node.PodController { return n.pods }

// NodeController returns the node controller of the node.
func (n *Node) NodeController() *node.NodeController { return n.node }

// Ready returns a channel that is closed when both controllers are ready: pods
// are handled and the node is registered.
func (n *Node) Ready() <-chan struct{} { return n.ready }

// Done returns a channel that is closed when Run has ended.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err returns what Run returned, and nil before.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

// WaitReady waits until the node is ready, Run has ended, ctx has ended or
// timeout has passed, and returns nil only in the first case. A timeout of 0 or less waits
// for as long as ctx lives.
func (n *Node) WaitReady(ctx context.Context, timeout time.Duration) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	select {
	case <-n.ready:
		return nil
	default: // a node that is ready wins over a context that has ended
	}
	select {
	case <-n.ready:
		return nil
	case <-n.done:
		return fmt.Errorf("controller exited before ready: %w", n.Err())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// health answers /healthz: nil while the node is ready.
func (n *Node) health(context.Context) error {
	select {
	case <-n.done:
		return errors.New("node has stopped")
	default:
	}
	select {
	case <-n.ready:
		return nil
	default:
		return errors.New("node is not ready yet")
	}
}
