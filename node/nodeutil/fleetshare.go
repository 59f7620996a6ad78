// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/replicas"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// shareRetry is the delay before a node is started again after a failed start or an unexpected end.
const shareRetry = 10 * time.Second

// share is this process's part of the shared nodes. It is owned by run.
type share struct {
	fleet  *Fleet
	wanted map[string]bool // the names of this process's nodes
	nodes  map[string]*sharedNode
	due    map[string]time.Time // when to start delayed nodes, by name
	again  *time.Timer          // fires when the first delayed node is due
	made   chan *sharedNode     // nodes after the attempt to make them
	ended  chan *sharedNode     // ended nodes
	ever   bool                 // true once a node has been created
	failed map[string]bool      // names of nodes that could not be created, before the first success
	making chan struct{}        // limits creation to one provider at a time, as without sharing
}

// sharedNode is a node of this process, from its start until it has ended. share.run owns its fields, except node and err, which are set
// before the sharedNode is sent.
type sharedNode struct {
	name  string
	stop  context.CancelFunc
	given bool  // the node moves to another process
	shown bool  // other parts of this process may see the node
	node  *Node // set before the sharedNode is sent to made
	err   error // set before the sharedNode is sent to made: why the node could not be made
}

// runShare runs this process's nodes until ctx ends. The process first joins the group; its nodes change when processes join or leave. It
// leaves the group when its last node has ended.
func (f *Fleet) runShare(ctx context.Context) error {
	s := &share{
		fleet: f, wanted: map[string]bool{}, nodes: map[string]*sharedNode{}, due: map[string]time.Time{}, again: time.NewTimer(time.Hour),
		made: make(chan *sharedNode), ended: make(chan *sharedNode), failed: map[string]bool{}, making: make(chan struct{}, 1),
	}
	defer s.again.Stop()
	inGroup, leave := context.WithCancel(context.WithoutCancel(ctx))
	failed := make(chan error, 1)
	var group sync.WaitGroup
	group.Go(func() { failed <- f.group.Run(inGroup) })
	err := s.run(ctx, failed)
	leave()
	group.Wait()
	f.group.Leave(ctx)
	return err
}

// run returns when the last node has ended: after the end of ctx, after an error of the group, or if no node could be created.
func (s *share) run(ctx context.Context, failed <-chan error) (err error) {
	nodes, stop := context.WithCancel(ctx)
	defer stop()
	for err == nil && ctx.Err() == nil {
		select {
		case <-s.fleet.group.Changed:
			s.adjust(nodes)
		case <-s.again.C:
			s.fill(nodes)
		case n := <-s.made:
			err = s.take(ctx, n)
		case n := <-s.ended:
			s.end(nodes, n)
		case err = <-failed:
		case <-ctx.Done():
		}
	}
	stop()
	for len(s.nodes) > 0 {
		select {
		case <-s.made:
		case n := <-s.ended:
			delete(s.nodes, n.name)
		}
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// adjust starts and stops nodes until exactly this process's share runs.
func (s *share) adjust(ctx context.Context) {
	members := s.fleet.group.Live()
	wanted := replicas.Assign(s.fleet.names, members)[s.fleet.group.Member()]
	log.G(ctx).WithFields(log.Fields{"nodes": len(wanted), "processes": len(members), "member": s.fleet.group.Member()}).Info("This process has its share of the nodes")
	clear(s.wanted)
	for _, name := range wanted {
		s.wanted[name] = true
	}
	for name, n := range s.nodes {
		if !s.wanted[name] {
			n.given, n.shown = true, false
			n.stop()
		}
	}
	s.tell()
	s.fill(ctx)
}

// fill starts the wanted nodes, except for running and delayed ones. A node that is still being handed over is started again after it has
// ended.
func (s *share) fill(ctx context.Context) {
	next, now := time.Hour, time.Now()
	for name := range s.wanted {
		switch left := s.due[name].Sub(now); {
		case s.nodes[name] != nil:
		case left > 0:
			next = min(next, left)
		default:
			s.start(ctx, name)
		}
	}
	s.again.Reset(next)
}

// start makes and runs a node.
func (s *share) start(parent context.Context, name string) {
	ctx, stop := context.WithCancel(parent)
	n := &sharedNode{name: name, stop: stop}
	delete(s.due, name)
	s.nodes[name] = n
	go func() {
		defer func() { s.ended <- n }()
		defer stop()
		select {
		case s.making <- struct{}{}:
			if ctx.Err() == nil {
				n.node, n.err = s.fleet.make(name)
			}
			<-s.making
		case <-ctx.Done():
		}
		s.made <- n
		if n.node != nil {
			_ = s.fleet.runNode(ctx, n.node) // runNode logs the error
		}
	}()
}

// take handles the result of making a node. It returns an error if every node has failed and none ever succeeded, because the cause is then
// common to all.
func (s *share) take(ctx context.Context, n *sharedNode) error {
	switch {
	case n.err != nil:
		if s.failed[n.name] = true; !s.ever && len(s.failed) >= len(s.wanted) {
			return n.err
		}
		log.G(ctx).WithError(n.err).WithField("node", n.name).Errorf("The node cannot be made; trying again in %v", shareRetry)
	case n.node != nil:
		s.ever = true
		n.shown = !n.given
		s.tell()
	}
	return nil
}

// end handles the end of a node. If the node is in this process's share, it is started again: at once if it had been handed over in the
// meantime, else after a delay.
func (s *share) end(ctx context.Context, n *sharedNode) {
	delete(s.nodes, n.name)
	s.tell()
	switch {
	case !s.wanted[n.name]:
	case n.given:
		s.start(ctx, n.name)
	default:
		s.due[n.name] = time.Now().Add(shareRetry)
		s.fill(ctx)
	}
}

// tell publishes the current nodes to the other parts of this process.
func (s *share) tell() {
	var nodes []*Node
	for _, n := range s.nodes {
		if n.shown {
			nodes = append(nodes, n.node)
		}
	}
	slices.SortFunc(nodes, func(a, b *Node) int { return strings.Compare(a.name, b.name) })
	s.fleet.hold(nodes)
	s.fleet.life.setReady()
}
