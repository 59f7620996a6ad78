// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// podsHeadStart is the time that the node controller waits for the pod controller. After that, a backend or a cache that hangs no longer
// prevents the registration of the node; its Ready condition shows the problem.
const podsHeadStart = 10 * time.Second

// Run runs the node until ctx ends, and then returns the error of ctx. It opens the server's port first, so that a port conflict is an
// error before the node is registered. Then it starts the informers and the pod controller, and the node controller when the pod controller
// is ready. If one of them ends, the others are stopped and Run returns its error.
//
// When Run returns, everything that it started has ended, except provider calls that ignore their context. The Node object remains. A
// second call is an error.
func (n *Node) Run(ctx context.Context) error {
	if n.inFleet {
		return fmt.Errorf("run node %s: it runs with its fleet", n.name)
	}
	if !n.life.begin() {
		return fmt.Errorf("run node %s: it was run before; make a new one", n.name)
	}
	err := n.run(ctx)
	n.life.end(err)
	return err
}

func (n *Node) run(parent context.Context) error {
	parent = log.WithLogger(parent, log.G(parent).WithField("node", n.name))
	listener, err := n.listen(parent)
	if err != nil {
		return err
	}
	if listener != nil {
		n.listenPort(listener.Addr())
	}
	p := newParts(parent)
	stop := n.base.start(p, listener)
	defer stop()
	return n.runParts(p)
}

// runParts adds the node's own parts to p, and returns when all have ended.
func (n *Node) runParts(p *parts) error {
	p.start("node controller", func(ctx context.Context) error {
		n.waitForPods(ctx)
		n.beginReady()
		return n.node.Run(ctx)
	})
	n.startProvisioner(p)
	n.startSlices(p)
	p.group.Go(func() error { return n.becomeReady(p.ctx) })
	return p.wait("pod controller", func(ctx context.Context) error { return n.pods.Run(ctx, n.cfg.NumWorkers) })
}

// waitForPods waits for the pod controller, at most podsHeadStart.
func (n *Node) waitForPods(ctx context.Context) {
	timer := time.NewTimer(podsHeadStart)
	defer timer.Stop()
	select {
	case <-n.pods.Ready():
	case <-ctx.Done():
	case <-timer.C:
		log.G(ctx).Warn("Pod controller is not ready yet; registering the node meanwhile")
	}
}

// beginReady makes the initial node ready, if the pod controller is ready and the program has no NodeProvider. A node that another process
// ran until now, or that is restarted, must not become unready briefly.
func (n *Node) beginReady() {
	if n.naive == nil {
		return
	}
	select {
	case <-n.pods.Ready():
		ready := readyNode(&n.cfg.NodeSpec, time.Now()).Status
		n.cfg.NodeSpec.Status.Phase, n.cfg.NodeSpec.Status.Conditions = ready.Phase, ready.Conditions // other goroutines may read the other fields
	default:
	}
}

// becomeReady makes the node ready once both controllers are ready. It returns nil if ctx ends first.
func (n *Node) becomeReady(ctx context.Context) error {
	for _, ready := range []<-chan struct{}{n.pods.Ready(), n.node.Ready()} {
		select {
		case <-ready:
		case <-ctx.Done():
			return nil
		}
	}
	if n.naive != nil {
		err := n.naive.UpdateStatus(ctx, readyNode(&n.cfg.NodeSpec, time.Now()))
		if err != nil && !errors.Is(err, ctx.Err()) {
			return fmt.Errorf("make the node ready: %w", err)
		}
	}
	if ctx.Err() == nil {
		n.life.setReady()
	}
	return nil
}
