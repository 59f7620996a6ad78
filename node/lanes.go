// SPDX-License-Identifier: Apache-2.0

package node

import (
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/internal/keyqueue"
)

// Classes of work in the status lane.
const (
	classStatus = iota
	classRemoval
)

// lookAgain is the pause until the next work on a pod that waits for other pods or for the cache.
const lookAgain = time.Second

// lanes are the queues of work on pods. Any goroutine may add work, and at most one worker per lane processes a pod. There is a lane for
// work towards the backend, a lane for writes to the API server, and a lane for status polls.
type lanes struct {
	syncLane   *keyqueue.Queue
	statusLane *keyqueue.Queue
	pollLane   *keyqueue.Queue // polls statuses that were not reported

	polled       chan struct{} // holds a token when a poll is wanted soon
	relistWanted chan struct{} // holds a token when a relist is wanted at once
}

// relistNow starts a comparison of both sides at once.
func (l *lanes) relistNow() { leaveToken(l.relistWanted) }

// pollSoon starts a collection of the statuses within a second.
func (l *lanes) pollSoon() { leaveToken(l.polled) }

// kickAll starts all work that waits for a retry at once.
func (l *lanes) kickAll() {
	l.syncLane.Kick()
	l.statusLane.Kick()
	l.pollLane.Kick()
}
