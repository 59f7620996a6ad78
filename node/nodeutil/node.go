// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1informers "k8s.io/client-go/informers/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/internal/nilcheck"
	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// Node is a whole virtual node. Make one with NewNode and start it, once, with Run.
type Node struct {
	// Set by NewNode or NewFleet, constant afterwards.
	*base
	name     string
	cfg      NodeConfig                // NodeSpec is the node controller's once that runs
	events   *lateRecorder             // nil: the program records events
	naive    *node.NaiveNodeProviderV2 // nil: the program has a NodeProvider
	provider Provider
	lister   corev1listers.PodLister // of the pods of this node
	pods     *node.PodController
	node     *node.NodeController
	health   func(context.Context) error // answers /healthz
	inFleet  bool                        // Run belongs to a Fleet

	registered registration // for /configz

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
		return nil, errNoProviderFunc
	}
	cfg, fromEnv := defaultConfig(name)
	if err := configure(&cfg, opts); err != nil {
		return nil, err
	}
	b, err := newBase(name, cfg, fromEnv)
	if err != nil {
		return nil, err
	}
	pods := newPodInformer(b.clients.watches, name, b.common.InformerResyncPeriod)
	b.informers = append(b.informers, pods.Informer())
	n, err := b.newNode(name, b.common, pods, b.clients.nodes, newProvider)
	if err != nil {
		return nil, err
	}
	n.health = n.isWell
	if cfg.mux != nil {
		n.attachProvider(authMux{cfg.mux})
	}
	return n, nil
}

// newNode returns a node on b with the configuration cfg, that sees its pods through pods.
func (b *base) newNode(name string, cfg NodeConfig, pods corev1informers.PodInformer, nodes corev1client.NodeInterface, newProvider NewProviderFunc) (*Node, error) {
	n := &Node{base: b, name: name, cfg: cfg, lister: pods.Lister(), ready: make(chan struct{}), done: make(chan struct{})}
	provider, nodeProvider, err := newProvider(ProviderConfig{
		Pods:       n.lister,
		ConfigMaps: b.objects.ConfigMaps().Lister(),
		Secrets:    b.objects.Secrets().Lister(),
		Services:   b.services.Lister(),
		Listed:     func() bool { return pods.Informer().HasSynced() && b.services.Informer().HasSynced() },
		Node:       &n.cfg.NodeSpec,
		Recorder:   redactedEvents{n.recorder("kubelet"), n},
	})
	if err != nil {
		return nil, fmt.Errorf("make provider: %w", err)
	}
	switch {
	case provider == nil:
		return nil, errors.New("make provider: it is nil, and so is the error")
	case nilcheck.Is(provider):
		return nil, fmt.Errorf("make provider: it is a nil %T, and the error is nil", provider)
	case nodeProvider == nil:
		n.naive = node.NewNaiveNodeProvider()
		nodeProvider = n.naive
	case nilcheck.Is(nodeProvider):
		return nil, fmt.Errorf("make node provider: it is a nil %T; return a plain nil for a node that is always healthy", nodeProvider)
	}
	completeNode(&n.cfg.NodeSpec) // the provider may have written a status of its own
	if b.server != nil {
		declareStreams(&n.cfg)
	}
	if n.cfg.NodeSpec.Name != name {
		return nil, fmt.Errorf("the node is named %q in its spec; pods for it would never be seen", n.cfg.NodeSpec.Name)
	}
	n.provider = provider
	n.registered = registrationOf(&n.cfg.NodeSpec)

	capacity := &capacityWatch{NodeProvider: nodeProvider}
	if b.serving != nil {
		capacity.also = b.serving.observe
	}
	capacity.observe(&n.cfg.NodeSpec)
	podConfig := node.PodControllerConfig{
		PodClient:                 b.clients.main.CoreV1(),
		PodInformer:               pods,
		EventRecorder:             n.recorder(n.name + "/pod-controller"),
		Provider:                  provider,
		ConfigMapInformer:         b.objects.ConfigMaps(),
		SecretInformer:            b.objects.Secrets(),
		ServiceInformer:           b.services,
		SkipDownwardAPIResolution: n.cfg.SkipDownwardAPIResolution,
		NodeName:                  name,
		OperatingSystem:           n.cfg.NodeSpec.Status.NodeInfo.OperatingSystem,
		NodeAllocatable:           capacity.allocatable,
		SetNodeCondition:          func(c corev1.NodeCondition) { n.node.SetCondition(c) }, // while Run runs, so there is one
		NodeAddresses:             capacity.addresses,
	}
	for _, opt := range n.cfg.PodControllerConfigOpts {
		if err := opt(&podConfig); err != nil {
			return nil, fmt.Errorf("apply pod controller option: %w", err)
		}
	}
	if n.pods, err = node.NewPodController(podConfig); err != nil {
		return nil, fmt.Errorf("make pod controller: %w", err)
	}
	capacity.redact = func(err error) error { return n.pods.RedactError("", "", err) }

	nodeOpts := []node.NodeControllerOpt{
		node.WithNodeEnableLeaseV1WithRenewInterval(b.clients.leases, node.DefaultLeaseDuration, cfg.renewInterval()),
		node.WithNodeHealthyHook(n.pods.Kick), // pods that failed while the backend was down need not wait
	}
	if !n.cfg.DisableLeaseGuard {
		nodeOpts = append(nodeOpts, node.WithNodeLeaseGuard(n.pods))
	}
	if h := n.cfg.NodeStatusUpdateErrorHandler; h != nil {
		nodeOpts = append(nodeOpts, node.WithNodeStatusUpdateErrorHandler(h))
	}
	if n.node, err = node.NewNodeController(capacity, &n.cfg.NodeSpec, nodes, nodeOpts...); err != nil {
		return nil, fmt.Errorf("make node controller: %w", err)
	}
	n.attachNotices(podConfig.EventRecorder)
	return n, nil
}

// attachNotices shows at the node how it stands with its certificates.
func (n *Node) attachNotices(events record.EventRecorder) {
	if n.serving != nil {
		n.serving.notices.attach(n.name, n.node, events)
	}
	if n.clientCert != nil {
		n.clientCert.notices.attach(n.name, n.node, events)
	}
}

// recorder returns the program's recorder, or one that works while Run does.
func (n *Node) recorder(component string) record.EventRecorder {
	if n.cfg.EventRecorder != nil {
		return n.cfg.EventRecorder
	}
	n.events = n.hub.recorder(component, n.name)
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
	err := waitReady(ctx, timeout, n)
	if holder, yes := n.node.StandsBy(); yes && n.Err() == nil && err != nil {
		return fmt.Errorf("standing by for %s, which acts for the node: %w", holder, err)
	}
	return err
}

// waitReady is WaitReady of a Node and of a Fleet.
func waitReady(ctx context.Context, timeout time.Duration, n interface {
	Ready() <-chan struct{}
	Done() <-chan struct{}
	Err() error
}) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	select {
	case <-n.Ready():
		return nil
	default: // what is ready wins over a context that has ended
	}
	select {
	case <-n.Ready():
		return nil
	case <-n.Done():
		return fmt.Errorf("controller exited before ready: %w", n.Err())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isWell answers /healthz: nil while the node is ready, and while it stands by for
// another process: a rollout waits for the new pod to be healthy before it ends the old.
func (n *Node) isWell(context.Context) error {
	select {
	case <-n.done:
		return errors.New("node has stopped")
	default:
	}
	if _, yes := n.node.StandsBy(); yes {
		return nil
	}
	select {
	case <-n.ready:
		return nil
	default:
		return errors.New("node is not ready yet")
	}
}
