// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// Node is a complete virtual node. Create it with NewNode, and call Run once.
type Node struct {
	// Set by NewNode or NewFleet, then constant.
	*base
	name     string
	cfg      NodeConfig                // once the node controller runs, NodeSpec belongs to it
	events   *lateRecorder             // nil: the program has its own event recorder
	naive    *node.NaiveNodeProviderV2 // nil: the program has a NodeProvider
	provider Provider
	lister   corev1listers.PodLister // of the pods of this node
	pods     *node.PodController
	node     *node.NodeController
	health   func(context.Context) error // answers /healthz
	inFleet  bool                        // Run belongs to a Fleet

	registered registration // for /configz
	life       *lifetime
}

// recorder returns the program's recorder, or a recorder that works during Run.
func (n *Node) recorder(component string) record.EventRecorder {
	if n.cfg.EventRecorder != nil {
		return n.cfg.EventRecorder
	}
	n.events = n.hub.recorder(component, n.name)
	return n.events
}

// listenPort publishes the port that the system has chosen in the Node object.
func (n *Node) listenPort(addr net.Addr) {
	completePort(&n.cfg.NodeSpec, addr.String())
}

// PodController returns the pod controller of the node.
func (n *Node) PodController() *node.PodController { return n.pods }

// NodeController returns the node controller of the node.
func (n *Node) NodeController() *node.NodeController { return n.node }

// Ready returns a channel, closed when both controllers are ready: pods are handled and the node is registered.
func (n *Node) Ready() <-chan struct{} { return n.life.ready }

// Done returns a channel that is closed when Run has ended.
func (n *Node) Done() <-chan struct{} { return n.life.done }

// Err returns the result of Run, or nil while Run has not returned.
func (n *Node) Err() error { return n.life.result() }

// WaitReady waits until the node is ready, Run has ended, ctx has ended or timeout has passed, and returns nil only in the first case. A
// timeout of 0 or less means no timeout.
func (n *Node) WaitReady(ctx context.Context, timeout time.Duration) error {
	err := n.life.waitReady(ctx, timeout)
	if holder, yes := n.node.StandsBy(); yes && n.Err() == nil && err != nil {
		return fmt.Errorf("standing by for %s, which acts for the node: %w", holder, err)
	}
	return err
}

// isWell answers /healthz: nil while the node is ready or waits for another process to release it: a rollout waits until the new pod is
// healthy before it ends the old pod.
func (n *Node) isWell(context.Context) error {
	if n.life.hasEnded() {
		return errors.New("node has stopped")
	}
	if _, yes := n.node.StandsBy(); yes {
		return nil
	}
	if !n.life.isReady() {
		return errors.New("node is not ready yet")
	}
	return nil
}
