// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
)

// mailbox passes input to the worker of a pod. Every goroutine may write, but only the worker reads.
type mailbox struct {
	wake chan struct{} // holds a value when the inbox has input

	mu     sync.Mutex
	inbox  inbox // guarded by mu
	asked  int   // guarded by mu: number of requests of the pod controller
	taken  int   // guarded by mu: number of requests that the worker has taken
	closed bool  // guarded by mu: the pod is completely removed
}

// inbox has the input since the worker last took it.
type inbox struct {
	pod      *corev1.Pod
	stop     *stopRequest
	list     *listed
	touched  []string // IDs with an event of the runtime
	done     []done
	refresh  *time.Duration // the volumes were refreshed; the wait until the next refresh
	measured *string        // the exceeded volume limit; "" means none
	evict    *plan.Eviction // the machine is short of resources for the pod
	reclaim  bool           // the machine is short of disk space for the containers of an ended pod
}

// stopRequest has the grace period of a pod that must end.
type stopRequest struct {
	grace time.Duration
	at    time.Time
}

// done is an ended action.
type done struct {
	action  plan.Action
	outcome plan.Outcome
	at      time.Time
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

// putInput changes the inbox and wakes the worker. It reports false if the worker has ended.
func (m *mailbox) putInput(change func(*inbox)) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.put(change)
}

// putRequest is putInput for a request of the pod controller, which later waits for its effect.
func (m *mailbox) putRequest(change func(*inbox)) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.put(change) {
		return false
	}
	m.asked++
	return true
}

// put needs mu.
func (m *mailbox) put(change func(*inbox)) bool {
	if m.closed {
		return false
	}
	change(&m.inbox)
	select {
	case m.wake <- struct{}{}:
	default:
	}
	return true
}

// takeInput empties the inbox.
func (m *mailbox) takeInput() inbox {
	m.mu.Lock()
	defer m.mu.Unlock()
	in := m.inbox
	m.inbox, m.taken = inbox{}, m.asked
	return in
}

// askedRequests returns the number of requests so far, and takenRequests the number that the worker has taken.
func (m *mailbox) askedRequests() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}

func (m *mailbox) takenRequests() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.taken
}

// closeUnless closes the mailbox, unless there is input that must be handled.
func (m *mailbox) closeUnless(mustHandle func(*inbox) bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mustHandle(&m.inbox) {
		return false
	}
	m.closed = true
	return true
}
