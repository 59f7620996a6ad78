// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
)

// mailbox hands input to the worker of a pod. Every goroutine may write; the worker alone reads.
type mailbox struct {
	wake chan struct{} // holds a token when there is something in the inbox

	mu     sync.Mutex
	inbox  inbox // guarded by mu
	asked  int   // guarded by mu: number of requests of the pod controller
	taken  int   // guarded by mu: number of requests that the worker has taken
	closed bool  // guarded by mu: no remains of the pod are left
}

// inbox has the worker's input since its last look.
type inbox struct {
	pod      *corev1.Pod
	stop     *stopRequest
	list     *listed
	touched  []string // IDs with an event of the runtime
	done     []done
	refresh  *time.Duration // the volumes were refreshed; the wait until the next refresh
	measured *string        // the exceeded volume limit; "" is none
	evict    *plan.Eviction // the machine has too little left for the pod
	reclaim  bool           // the machine has too little left for the containers of an ended pod
}

// stopRequest has the time for the pod to end.
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

// putRequest is putInput for a request of the pod controller, whose next question waits for the effect.
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

// closeUnless refuses further input, unless there is input that must be handled.
func (m *mailbox) closeUnless(mustHandle func(*inbox) bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mustHandle(&m.inbox) {
		return false
	}
	m.closed = true
	return true
}
