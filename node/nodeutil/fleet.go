// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/fanout"
	"github.com/virtual-kubelet/virtual-kubelet/internal/replicas"
)

// Fleet is a set of virtual nodes in one process. Create it with NewFleet, and call Run once.
//
// Its nodes share connections and their limits, one watch of pods, one of nodes and one of services, and the kubelet's server. Each node
// has a provider, a lease and controllers of its own. The identity must have permissions for all nodes: a service account with a role can
// have them, the identity of one node (system:node:NAME) cannot. See docs/decisions/0009-many-nodes.md.
type Fleet struct {
	*base
	names  []string
	make   func(name string) (*Node, error)
	pods   *fanout.Pods
	watch  *fanout.Nodes
	common http.Handler    // serves the pages common to all nodes; nil without a server
	group  *replicas.Group // nil: the nodes are not shared with other processes

	places  chan struct{} // one element for each starting node
	address net.Addr      // address of the server; set before nodes run, nil without a server

	running atomic.Pointer[fleetNodes] // never nil

	life *lifetime
}

// hold sets the current nodes of the fleet.
func (f *Fleet) hold(nodes []*Node) {
	f.running.Store(newFleetNodes(nodes, f.group != nil))
}

// Nodes returns the nodes, in the order of their names. If nodes are shared with other processes, it returns the nodes that this process
// runs. The fleet runs them; calling their own Run is an error.
func (f *Fleet) Nodes() []*Node { return append([]*Node(nil), f.running.Load().nodes...) }

// Node returns the node with the name, or nil if there is no such node or another process runs it.
func (f *Fleet) Node(name string) *Node { return f.running.Load().byName[name] }

// Ready returns a channel that is closed when all nodes are ready, or, with shared nodes, when this process has
// its first share.
func (f *Fleet) Ready() <-chan struct{} { return f.life.ready }

// Done returns a channel that is closed when Run has ended.
func (f *Fleet) Done() <-chan struct{} { return f.life.done }

// Err returns the result of Run, or nil while Run has not returned.
func (f *Fleet) Err() error { return f.life.result() }

// WaitReady waits until all nodes are ready, Run has ended, ctx has ended or timeout has passed, and returns nil only in the first case. A
// timeout of 0 or less means no timeout.
func (f *Fleet) WaitReady(ctx context.Context, timeout time.Duration) error {
	return f.life.waitReady(ctx, timeout)
}

// isWell answers /healthz of the process, which is healthy if all its nodes are healthy.
func (f *Fleet) isWell(ctx context.Context) error {
	if f.group != nil && !f.life.isReady() {
		return errors.New("this process has no share of the nodes yet")
	}
	for _, n := range f.running.Load().nodes {
		if err := n.isWell(ctx); err != nil {
			return fmt.Errorf("node %s: %w", n.name, err)
		}
	}
	return nil
}

// isAlive answers /livez of the whole process.
func (f *Fleet) isAlive(ctx context.Context) error {
	for _, n := range f.running.Load().nodes {
		if err := n.isAlive(ctx); err != nil {
			return fmt.Errorf("node %s: %w", n.name, err)
		}
	}
	return nil
}
