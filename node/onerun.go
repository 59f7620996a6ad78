// SPDX-License-Identifier: Apache-2.0

package node

import "sync"

// oneRun is the only run of a controller. It refuses a second run, and records the end and the error of the run.
type oneRun struct {
	done chan struct{} // closed when it has ended

	mu      sync.Mutex
	started bool  // guarded by mu
	err     error // guarded by mu
}

// start begins the run. It returns false if the run was started before.
func (o *oneRun) start() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := !o.started
	o.started = true
	return first
}

// end records the error that the run returns.
func (o *oneRun) end(err error) {
	o.mu.Lock()
	o.err = err
	o.mu.Unlock()
	close(o.done)
}

// wasBegun reports whether there was a run.
func (o *oneRun) wasBegun() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.started
}

// runError returns the error of the run, or nil while it has not ended.
func (o *oneRun) runError() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
