// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

const (
	// startingNodes bounds the nodes that start at the same time.
	startingNodes = 64
	// startPatience is the time that a node that does not become ready delays others.
	startPatience = 2 * time.Second
)

// runNode runs the node's own parts, once the node may start. When they end, other nodes continue.
func (f *Fleet) runNode(ctx context.Context, n *Node) error {
	ctx = log.WithLogger(ctx, log.G(ctx).WithField("node", n.name))
	select {
	case f.places <- struct{}{}:
	case <-ctx.Done():
		n.life.end(ctx.Err())
		return ctx.Err()
	}
	var started sync.WaitGroup
	defer started.Wait()
	started.Go(func() {
		waitStarted(ctx, n.life)
		<-f.places
	})
	if f.address != nil {
		n.listenPort(f.address)
	}
	err := n.runParts(newParts(ctx))
	n.life.end(err)
	if ctx.Err() == nil {
		err = fmt.Errorf("run node %s: %w", n.name, err)
		log.G(ctx).WithError(err).Error("The node has ended by itself; the others go on")
	}
	return err
}

// waitStarted waits until a node is ready, at most startPatience.
func waitStarted(ctx context.Context, l *lifetime) {
	timer := time.NewTimer(startPatience)
	defer timer.Stop()
	select {
	case <-l.ready:
	case <-l.done:
	case <-timer.C:
	case <-ctx.Done():
	}
}
