// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// Drain makes the node NotReady, refuses new pods and stops the existing pods, one group after the other; see node.PodController.Drain.
// Call it during Run, before its context ends, because the node must still hold its lease.
func (n *Node) Drain(ctx context.Context, groups ...node.DrainGroup) error {
	n.node.ShutDown()
	if err := n.pods.Drain(ctx, groups...); err != nil {
		return fmt.Errorf("node %s: %w", n.name, err)
	}
	return nil
}

// Drain drains all nodes at the same time; see Node.Drain. A node that cannot stop its pods does not delay the
// others.
func (f *Fleet) Drain(ctx context.Context, groups ...node.DrainGroup) error {
	nodes := f.running.Load().nodes
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() { errs[i] = n.Drain(ctx, groups...) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
