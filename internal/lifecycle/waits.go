// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "time"

// ReportedWithin is how long the report of a pod's end may be on its way. For so long after a stop the backend is not asked, and
// after it was seen without the pod it may still tell how that ended.
const ReportedWithin = 250 * time.Millisecond

const (
	// missingAfter is how long a pod must be missing at the backend before it
	// counts as lost: a list of an eventually consistent backend may lag.
	missingAfter = 10 * time.Second
	// inFlight is how long a call of a process that was killed may take to have its effect at a backend that knows
	// what it has.
	inFlight = 2 * time.Second
	// confirmedFor is how long a list confirms that a pod is lost: some take the better part of it.
	confirmedFor = time.Minute
	// stopAgainAfter is how long after the end of the grace period a stop that
	// was acknowledged but did not happen is asked for again.
	stopAgainAfter = 30 * time.Second
	// lookAgain is after how long a pod is looked at again that waits for another one of its name, or for a cache that is behind.
	lookAgain = time.Second
	// askAgain is how long after the time that a backend has for a stop it is asked for it again, and how long
	// what speaks against a removal lets it wait.
	askAgain = 10 * time.Second
)

// stopLook is after how long to look again whether a pod has stopped that was asked to so long ago.
func stopLook(waited time.Duration) time.Duration {
	return min(max(waited/2, ReportedWithin), 10*time.Second)
}
