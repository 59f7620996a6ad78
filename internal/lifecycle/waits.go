// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "time"

// ReportedWithin is how long the report of a pod's end may take to arrive. For this time after a stop the
// backend is not asked. For this time after the backend was seen without the pod, a report about its end may
// still arrive.
const ReportedWithin = 250 * time.Millisecond

const (
	// missingAfter is how long a pod must be missing at the backend before it
	// counts as lost: a list of an eventually consistent backend may lag.
	missingAfter = 10 * time.Second
	// inFlight is how long a call of a killed process may take to have its effect, at a backend that knows all
	// its pods.
	inFlight = 2 * time.Second
	// confirmedFor is how long a list confirms that a pod is lost. Some lists take most of this time.
	confirmedFor = time.Minute
	// stopAgainAfter is how long after the end of the grace period the stop is requested again, if the backend
	// acknowledged the stop but the pod still runs.
	stopAgainAfter = 30 * time.Second
	// lookAgain is the pause until the next look at a pod that waits for another pod of its name or for an
	// outdated cache.
	lookAgain = time.Second
	// askAgain is how long after the backend's time for a stop the stop is requested again. It is also the wait
	// when there is evidence against a removal.
	askAgain = 10 * time.Second
)

// stopLook returns the pause until the next check whether a pod has stopped. waited is the time since the
// request to stop it.
func stopLook(waited time.Duration) time.Duration {
	return min(max(waited/2, ReportedWithin), 10*time.Second)
}
