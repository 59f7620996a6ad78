// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"
)

// component is one part of the control plane with its own lifetime.
type component struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{} // closed when run has returned
}

// start runs a component until it is stopped, and always reports its end to ended. Its context is its own and
// not the caller's: on SIGTERM the components stop one after the other and not all at once. Otherwise the last
// components would fill the log with complaints about the first.
func start(name string, run func(context.Context) error, ended func(error)) *component {
	ctx, cancel := context.WithCancel(context.Background())
	c := &component{name: name, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		if err := run(ctx); err != nil {
			ended(fmt.Errorf("%s ended: %w", name, err))
		} else {
			ended(fmt.Errorf("%s ended without being told to", name))
		}
	}()
	return c
}

// stop ends the component and waits for it, but no longer than stopTimeout: the API server would wait a minute
// for clients that follow a log. These clients lose their connection with the process.
func (c *component) stop() {
	c.cancel()
	timeout := time.NewTimer(stopTimeout)
	defer timeout.Stop()
	select {
	case <-c.done:
	case <-timeout.C:
		klog.InfoS("Component left behind at the end of the process", "component", c.name, "waited", stopTimeout)
	}
}
