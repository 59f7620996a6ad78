// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"sync"
)

// background runs the goroutines of a Runtime between its start and its stop.
type background struct {
	mu  sync.Mutex
	ctx context.Context // guarded by mu: the context of the run; nil before the start and after the stop
	wg  sync.WaitGroup
}

// start lets begin start work, until ctx ends.
func (b *background) start(ctx context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ctx = ctx
}

// stop rejects new work, and waits until all work has ended.
func (b *background) stop() {
	b.mu.Lock()
	b.ctx = nil
	b.mu.Unlock()
	b.wg.Wait()
}

// begin runs work on a goroutine, and reports whether work was started. It returns false while the node stops.
func (b *background) begin(work func()) bool {
	return b.beginWithin(func(context.Context) { work() })
}

// beginWithin is begin for work that ends with the context of the run.
func (b *background) beginWithin(work func(ctx context.Context)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx := b.ctx
	if ctx == nil {
		return false
	}
	b.wg.Go(func() { work(ctx) })
	return true
}

// isStopping reports whether the node is stopping. Failures then come from the stop, not from a pod.
func (b *background) isStopping() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ctx == nil || b.ctx.Err() != nil
}
