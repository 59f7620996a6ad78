// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

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
