// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/virtual-kubelet/virtual-kubelet/internal/providercall"
)

// background runs what the provider has to do while the node runs, and ends the controller if that
// ends before it.
func (c *PodController) background(ctx context.Context, end context.CancelCauseFunc) {
	runner, ok := c.provider.(BackgroundRunner)
	if !ok {
		return
	}
	err := (&providercall.Caller{}).Do(ctx, "RunInBackground", runner.RunInBackground)
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		err = errors.New("it returned while the node runs")
	}
	end(fmt.Errorf("the provider's work in the background: %w", err))
}
