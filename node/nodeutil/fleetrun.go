// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/virtual-kubelet/virtual-kubelet/internal/keyqueue"
)

// statusWriters bounds the concurrent writes of pods of all nodes together: about the number of simultaneous
// requests on a connection to the API server.
const statusWriters = 128

// Run runs all nodes until ctx ends, and then returns the error of ctx. It opens the server's port first, then starts the watches, and then
// the nodes, at most startingNodes at the same time.
//
// A node with a failing provider is not ready, as alone, and does not affect the others. If a node ends before ctx, because of a mistake in
// the program, the other nodes continue, and the error is in the log and in the node's Err. Run ends early only if all nodes or their
// shared parts end. When Run returns, everything that it started has ended, except provider calls that ignore their context. A second call
// is an error.
func (f *Fleet) Run(ctx context.Context) error {
	if !f.life.begin() {
		return fmt.Errorf("run %d nodes: they were run before; make new ones", len(f.names))
	}
	err := f.run(ctx)
	f.life.end(err)
	return err
}

func (f *Fleet) run(parent context.Context) error {
	parent, end := keyqueue.Share(parent, statusWriters)
	defer end()
	listener, err := f.listen(parent)
	if err != nil {
		return f.abandon(err)
	}
	if listener != nil {
		f.address = listener.Addr()
	}
	p := newParts(parent)
	stop := f.base.start(p, listener)
	defer stop()
	p.start("watch of pods", f.pods.Run)
	p.start("watch of nodes", f.watch.Run)
	if f.group != nil {
		p.start("shared nodes", f.runShare)
		return p.group.Wait()
	}
	p.start("nodes", f.runNodes)
	p.group.Go(func() error { f.becomeReady(p.ctx); return nil })
	return p.group.Wait()
}

// abandon ends the nodes, which were never run, with err.
func (f *Fleet) abandon(err error) error {
	for _, n := range f.Nodes() {
		n.life.end(err)
	}
	return err
}

// runNodes runs the nodes until ctx ends, and returns earlier only if all of them have ended.
func (f *Fleet) runNodes(ctx context.Context) error {
	var wg sync.WaitGroup
	nodes := f.Nodes()
	errs := make([]error, len(nodes))
	for i, n := range nodes {
		wg.Go(func() { errs[i] = f.runNode(ctx, n) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// becomeReady makes the fleet ready when all nodes are.
func (f *Fleet) becomeReady(ctx context.Context) {
	for _, n := range f.Nodes() {
		select {
		case <-n.life.ready:
		case <-ctx.Done():
			return
		}
	}
	f.life.setReady()
}
