// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "time"

// ReportedWithin is the time within which a report of a pod's end arrives. The node waits this long after a stop before it asks the
// backend, and this long for the report after the backend no longer has the pod.
const ReportedWithin = 250 * time.Millisecond

const (
	// missingAfter is the time that a pod must be missing at the backend before it counts as lost, because the list of an eventually
	// consistent backend may lag.
	missingAfter = 10 * time.Second
	// inFlight is the time within which a call of a killed process takes effect, at a backend that knows all its pods.
	inFlight = 2 * time.Second
	// confirmedFor is the time for which a list confirms that a pod is lost. Slow lists take most of this time.
	confirmedFor = time.Minute
	// stopAgainAfter is the time after the end of the grace period when the stop is requested again, if the backend acknowledged the stop
	// but the pod still runs.
	stopAgainAfter = 30 * time.Second
	// lookAgain is the pause until the next decision about a pod that waits for another pod of its name or for the cache.
	lookAgain = time.Second
	// askAgain is the time after the end of the grace period when the stop of an orphan is requested again. It is also the pause if there
	// is evidence against a removal.
	askAgain = 10 * time.Second
)

// stopLook returns the pause until the next check whether a pod has stopped. waited is the time since the
// request to stop it.
func stopLook(waited time.Duration) time.Duration {
	return min(max(waited/2, ReportedWithin), 10*time.Second)
}
