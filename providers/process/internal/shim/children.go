// SPDX-License-Identifier: Apache-2.0

//go:build unix

package shim

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// children reaps every child of this process.
type children struct {
	signals chan os.Signal
	// guarded by mu
	mu      sync.Mutex
	waiting map[int]chan syscall.WaitStatus
	// kept has the statuses of children that ended before adoptChild. It is filled only while expecting, the
	// number of running keepUnknown calls, is not 0.
	kept      map[int]syscall.WaitStatus
	expecting int
}

func newChildren() *children {
	c := &children{signals: make(chan os.Signal, 1), waiting: map[int]chan syscall.WaitStatus{}, kept: map[int]syscall.WaitStatus{}}
	signal.Notify(c.signals, syscall.SIGCHLD)
	go func() {
		for range c.signals {
			c.reapEnded()
		}
	}()
	return c
}

func (c *children) stop() { signal.Stop(c.signals) }

// start calls fork, and returns a channel for the exit status of the process.
func (c *children) start(fork func() (int, error)) (<-chan syscall.WaitStatus, int, error) {
	// Hold the lock, so that the process is not reaped before it is in waiting.
	c.mu.Lock()
	defer c.mu.Unlock()
	pid, err := fork()
	if err != nil {
		return nil, 0, err
	}
	status := make(chan syscall.WaitStatus, 1)
	c.waiting[pid] = status
	return status, pid, nil
}

// keepUnknown keeps the exit statuses of unknown children until the caller calls release.
func (c *children) keepUnknown() (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expecting++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.expecting--; c.expecting == 0 {
			clear(c.kept)
		}
	}
}

// adoptChild returns a channel for the exit status of a process that another process started and that has become
// a child of this process. The caller must have called keepUnknown before.
func (c *children) adoptChild(pid int) <-chan syscall.WaitStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	status := make(chan syscall.WaitStatus, 1)
	if ended, ok := c.kept[pid]; ok {
		delete(c.kept, pid)
		status <- ended
		return status
	}
	c.waiting[pid] = status
	return status
}

// signalChild sends a signal to a child, unless it has been waited for.
func (c *children) signalChild(pid int, group bool, sig syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.waiting[pid]; !ok {
		return nil
	}
	if group {
		pid = -pid
	}
	return syscall.Kill(pid, sig)
}

// hasChild reports whether the process is a child that was not reaped yet, so its PID belongs to no other
// process.
func (c *children) hasChild(pid int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.waiting[pid]
	return ok
}

// reapEnded reaps every ended child, and reports whether other children remain.
func (c *children) reapEnded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return false
		case pid == 0:
			return true
		}
		if ch := c.waiting[pid]; ch != nil {
			ch <- status
			delete(c.waiting, pid)
		} else if c.expecting > 0 {
			c.kept[pid] = status
		}
	}
}
