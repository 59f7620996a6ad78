// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/virtual-kubelet/virtual-kubelet/internal/replicas"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// share is the part of shared nodes that this process has. It is owned by run.
type share struct {
	fleet   *Fleet
	nodes   map[string]*sharedNode
	ended   chan *sharedNode
	waiting []string // wanted nodes that have to end first, as they were given away a moment ago
}

// sharedNode is a node from its start here until it has ended, or, if it has ended by itself, until it is given away.
type sharedNode struct {
	*Node
	stop  context.CancelFunc
	given bool // another process is to have it
	over  bool // it runs no more
}

// runShare runs the nodes that are this process's until ctx ends: none before it has joined the group, and other ones when processes come and go.
// It leaves the group when no node runs any more.
func (f *Fleet) runShare(ctx context.Context) error {
	s := &share{fleet: f, nodes: map[string]*sharedNode{}, ended: make(chan *sharedNode)}
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

// run ends when no node runs any more: after the end of ctx, or with an error of the group or of a node that cannot be made.
func (s *share) run(ctx context.Context, failed <-chan error) (err error) {
	nodes, stop := context.WithCancel(ctx)
	defer stop()
	for err == nil && ctx.Err() == nil {
		select {
		case <-s.fleet.group.Changed:
			err = s.adjust(nodes)
		case n := <-s.ended:
			if s.end(n); slices.Contains(s.waiting, n.name) {
				err = s.adjust(nodes)
			}
		case err = <-failed:
		case <-ctx.Done():
		}
	}
	stop()
	for s.running() > 0 {
		s.end(<-s.ended)
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}

func (s *share) running() (n int) {
	for _, node := range s.nodes {
		if !node.over {
			n++
		}
	}
	return n
}

// end takes in that a node runs no more. One that has ended by itself, which is a mistake of the program, is not run again here: the others go on.
func (s *share) end(n *sharedNode) {
	n.over = true
	if n.given {
		delete(s.nodes, n.name)
		s.tell()
	}
}

// adjust starts and stops nodes until those run that are this process's share.
func (s *share) adjust(ctx context.Context) error {
	members := s.fleet.group.Live()
	wanted := replicas.Assign(s.fleet.names, members)[s.fleet.group.Member()]
	log.G(ctx).WithFields(log.Fields{"nodes": len(wanted), "processes": len(members), "member": s.fleet.group.Member()}).Info("This process has its share of the nodes")
	for name, n := range s.nodes {
		if slices.Contains(wanted, name) {
			continue
		}
		n.given = true
		n.stop()
		if n.over {
			delete(s.nodes, name)
		}
	}
	s.waiting = nil
	for _, name := range wanted {
		switch n := s.nodes[name]; {
		case n == nil:
			if err := s.start(ctx, name); err != nil {
				return err
			}
		case n.given:
			s.waiting = append(s.waiting, name)
		}
	}
	s.tell()
	return nil
}

// start runs a node.
func (s *share) start(ctx context.Context, name string) error {
	node, err := s.fleet.make(name)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	n := &sharedNode{Node: node, stop: stop}
	s.nodes[name] = n
	go func() {
		defer stop()
		_ = s.fleet.runNode(ctx, node) // it has logged what it was
		s.ended <- n
	}()
	return nil
}

// tell shows the others of this process which nodes there are.
func (s *share) tell() {
	var nodes []*Node
	for _, n := range s.nodes {
		nodes = append(nodes, n.Node)
	}
	slices.SortFunc(nodes, func(a, b *Node) int { return strings.Compare(a.name, b.name) })
	s.fleet.hold(nodes)
	select {
	case <-s.fleet.ready:
	default:
		close(s.fleet.ready)
	}
}
