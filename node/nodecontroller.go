// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	v1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lease"
	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
	"github.com/virtual-kubelet/virtual-kubelet/internal/nilcheck"
	"github.com/virtual-kubelet/virtual-kubelet/internal/providercall"
	"github.com/virtual-kubelet/virtual-kubelet/internal/redact"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// NodeController registers a node with the API server and keeps it up to date. The documentation of the package
// describes its guarantees.
type NodeController struct {
	nodeSettings
	// Set by NewNodeController and its options, then constant.
	provider     NodeProvider
	lease        *leaseRenewer  // nil without a lease
	pods         *PodController // acts only while this process holds the lease; nil: no lease guard
	group        LeaseGroup     // nil: the node is not shared
	pingTimeout  time.Duration
	healthyHooks []func()
	pinged       pingRecord

	run oneRun
}

// NodeControllerOpt changes the settings of a node controller. See the functions that return one.
type NodeControllerOpt func(*NodeController) error

// NewNodeController returns a controller for node, which reaches the API server through nodes. The controller does nothing until Run is
// called, so the provider may change node until then. An option that cannot be applied is an error.
func NewNodeController(p NodeProvider, node *corev1.Node, nodes v1.NodeInterface, opts ...NodeControllerOpt) (*NodeController, error) {
	n := &NodeController{
		provider: p,
		nodeSettings: nodeSettings{
			node: node, nodes: nodes, shutdown: newLatest[struct{}](), conditions: newOwnConditions(), ready: make(chan struct{}),
		},
		run: oneRun{done: make(chan struct{})},
	}
	switch {
	case nilcheck.Is(p):
		return nil, errdefs.InvalidInput("missing node provider")
	case node == nil:
		return nil, errdefs.InvalidInput("missing node")
	case nilcheck.Is(nodes):
		return nil, errdefs.InvalidInput("missing node client")
	}
	for _, opt := range opts {
		if err := opt(n); err != nil {
			return nil, fmt.Errorf("error applying node option: %w", err)
		}
	}
	if n.pingInterval == 0 {
		n.pingInterval = DefaultPingInterval
	}
	if n.pingTimeout == 0 {
		n.pingTimeout = n.pingInterval
	}
	if n.statusInterval == 0 {
		n.statusInterval = DefaultStatusUpdateInterval
	}
	n.leased = n.lease != nil
	n.standsBy = n.StandsBy
	if n.pods != nil && n.leased {
		n.lease.holder = newLeaseHolder(lease.NewMark(), n.pods, n.group)
		n.pods.fence = n.lease.holder.fence
	}
	return n, nil
}

// Run registers the node and keeps it up to date until ctx ends, and then returns nil; the node object stays. Failures of the API server
// and of the provider are retried. Run returns an error only if the node has no name, if NotifyNodeStatus panics, or if Run was called
// before.
//
// When Run returns, everything that it started has ended. The exception is a Ping that ignores its ended context for more than two seconds.
func (n *NodeController) Run(ctx context.Context) (err error) {
	if !n.run.start() {
		return fmt.Errorf("run node controller of %s: it was run before; make a new one", n.node.Name)
	}
	defer func() { n.run.end(err) }()

	if n.node.Name == "" {
		return errdefs.InvalidInput("run node controller: the node has no name")
	}
	ctx = log.WithLogger(ctx, log.G(ctx).WithField("node", n.node.Name))
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // before Wait, so that a panic here does not wait for running goroutines

	reconciler := newNodeReconciler(n.nodeSettings, n.lease != nil && n.lease.holder != nil)
	defer nodeReady.Track(reconciler.isReady.Get, n.node.Name)()
	defer nodeLeader.Track(func() float64 {
		_, waits := n.StandsBy()
		return metrics.Bool(!waits)
	}, n.node.Name)()
	err = (&providercall.Caller{}).Do(ctx, "NotifyNodeStatus", func(ctx context.Context) error {
		n.provider.NotifyNodeStatus(ctx, reconciler.takeNodeReport)
		return nil
	})
	if err != nil {
		return fmt.Errorf("run node controller of %s: %w", n.node.Name, err)
	}

	pings := &pinger{
		provider: n.provider, interval: n.pingInterval, timeout: n.pingTimeout,
		recovered: n.healthyHooks, results: reconciler.pings, record: &n.pinged,
	}
	watch := &nodeWatcher{
		nodes: n.nodes, name: n.node.Name, maxPause: min(maxWatchPause, n.pingInterval),
		observed: reconciler.observed, check: make(chan struct{}, 1),
	}
	wg.Go(func() { pings.run(ctx) })
	wg.Go(func() {
		if reconciler.waitRegistered(ctx) {
			watch.run(ctx)
		}
	})
	if n.lease != nil {
		n.lease.name, n.lease.owners, n.lease.gone = n.node.Name, reconciler.owners, watch.checkSoon
		n.lease.holder.tellHeld(reconciler.holds)
		wg.Go(func() {
			if n.lease.holder != nil || reconciler.waitRegistered(ctx) {
				n.lease.run(ctx)
			}
		})
	}
	reconciler.run(ctx)
	return nil
}

// StandsBy reports whether the controller waits because another process acts for the node, and returns a
// readable name of that process. See WithNodeLeaseGuard.
func (n *NodeController) StandsBy() (holder string, yes bool) {
	if n.lease == nil || n.lease.holder == nil {
		return "", false
	}
	mark, yes := n.lease.holder.fence.StandsBy()
	if mark.ID == "" {
		return "", false
	}
	return mark.String(), yes
}

// ProviderHealth returns the result of the last Ping, and false before the first Ping.
func (n *NodeController) ProviderHealth() (ProviderHealth, bool) {
	if h := n.pinged.last.Load(); h != nil {
		return *h, true
	}
	return ProviderHealth{}, false
}

// Ready returns a channel that is closed when the node is registered and its status was written for the first time. It does not mean that
// the node is ready for pods; the Ready condition shows that.
func (n *NodeController) Ready() <-chan struct{} {
	return n.ready
}

// Done returns a channel that is closed when Run has ended.
func (n *NodeController) Done() <-chan struct{} {
	return n.run.done
}

// Err returns the result of Run, and nil before Run has ended.
func (n *NodeController) Err() error {
	return n.run.runError()
}

// SetCondition shows c in the status of the node until ClearCondition. c replaces the provider's condition of
// that type. SetCondition does not wait for the API server, and may be called at any time, from any goroutine.
// Times in c may be left empty. The message is redacted and cut to 1 KiB.
func (n *NodeController) SetCondition(c corev1.NodeCondition) {
	c.Message = redact.Text(c.Message)
	n.conditions.change(func() { n.conditions.shown[c.Type] = c })
}

// ClearCondition undoes SetCondition: the node shows the provider's condition of that type, if there is one.
func (n *NodeController) ClearCondition(t corev1.NodeConditionType) {
	n.conditions.change(func() { delete(n.conditions.shown, t) })
}

// ShutDown makes the node NotReady for as long as Run goes on, as a kubelet does
// when its machine shuts down, so that no more pods come. It does not wait for
// the API server, and may be called at any time, more than once.
func (n *NodeController) ShutDown() { n.shutdown.put(struct{}{}) }
