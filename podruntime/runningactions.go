// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
)

// runningActions are the actions on a pod in progress. The worker of the pod owns them.
type runningActions struct {
	count  int
	starts map[string]context.CancelFunc // by container; "" means the sandbox
}

// begin counts an action, and returns the context for it.
func (r *runningActions) begin(ctx context.Context, a plan.Action) context.Context {
	r.count++
	if isStart(a) {
		ctx, r.starts[a.Container] = context.WithCancel(ctx)
	}
	return ctx
}

// end counts an ended action, and frees its context.
func (r *runningActions) end(a plan.Action) {
	r.count--
	if isStart(a) {
		r.cancelStart(a.Container) // otherwise, the parent of the context would keep it
		delete(r.starts, a.Container)
	}
}

// cancelStart cancels the start of a container, or of the sandbox with the name "".
func (r *runningActions) cancelStart(container string) {
	if cancel := r.starts[container]; cancel != nil {
		cancel()
	}
}

func isStart(a plan.Action) bool { return a.Kind == plan.Start || a.Kind == plan.RunSandbox }
