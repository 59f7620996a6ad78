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

// lookAgain is the pause until the next look at a pod that waits for other pods or whose cache is behind.
const lookAgain = time.Second

// lanes are where work on pods is marked, by anybody, and done by one worker for each pod: towards the backend, towards the
// API server, and for statuses that are to be asked for.
type lanes struct {
	syncLane   *keyqueue.Queue
	statusLane *keyqueue.Queue
	pollLane   *keyqueue.Queue // asks for what a PodNotifier has not told, and others do not tell

	polled       chan struct{} // holds a token when a poll is wanted soon
	relistWanted chan struct{} // holds a token when a relist is wanted at once
}

// relistNow lets both sides be compared at once.
func (l *lanes) relistNow() { wake(l.relistWanted) }

// pollSoon asks for the statuses to be collected within a second.
func (l *lanes) pollSoon() { wake(l.polled) }

// kick lets all work that waits for a retry begin at once.
func (l *lanes) kick() {
	l.syncLane.Kick()
	l.statusLane.Kick()
	l.pollLane.Kick()
}
