// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// lifetime is the one run of a Node or of a Fleet: its start, its readiness, its end and its error.
type lifetime struct {
	ready chan struct{} // closed by the goroutine of setReady
	done  chan struct{} // closed by end

	mu      sync.Mutex
	started bool  // guarded by mu
	err     error // guarded by mu
}

func newLifetime() *lifetime { return &lifetime{ready: make(chan struct{}), done: make(chan struct{})} }

// begin reports whether this is the first run.
func (l *lifetime) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := !l.started
	l.started = true
	return first
}

// setReady records that everything is ready. Only one goroutine calls it.
func (l *lifetime) setReady() {
	if !l.isReady() {
		close(l.ready)
	}
}

// end records the end of the run, and its error.
func (l *lifetime) end(err error) {
	l.mu.Lock()
	l.err = err
	l.mu.Unlock()
	close(l.done)
}

// isReady reports whether everything has been ready, also after the end.
func (l *lifetime) isReady() bool { return isClosed(l.ready) }

// hasEnded reports whether the run has ended.
func (l *lifetime) hasEnded() bool { return isClosed(l.done) }

// result returns the error of the run, or nil before its end.
func (l *lifetime) result() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// waitReady waits until everything is ready, the run has ended, ctx has ended or timeout has passed, and returns
// nil only in the first case. A timeout of 0 or less waits for as long as ctx lives.
func (l *lifetime) waitReady(ctx context.Context, timeout time.Duration) error {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	if l.isReady() { // ready takes precedence over an ended context
		return nil
	}
	select {
	case <-l.ready:
		return nil
	case <-l.done:
		return fmt.Errorf("controller exited before ready: %w", l.result())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isClosed reports whether a channel without values is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
