// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// nextStop decides about a pod that must stop.
func nextStop(f *Facts, backend *corev1.Pod) Decision {
	seconds := StopGrace(f.API, f.Failure)
	grace, changed := time.Duration(seconds)*time.Second, f.Sent.StopGrace != seconds
	waited := f.Now.Sub(f.Sent.StopAskedAt)
	switch {
	case backend == nil && f.TakenOver.IsZero() && !Started(f.API, f.Sent):
		return Decision{Step: Stopped, Backend: backend}
	case !f.Sent.StopAcked && !f.Sent.StopMissing:
		return Decision{Step: Stop, Backend: backend} // also after a create with an unknown outcome, because the pod may exist
	case backend == nil:
		return nextGone(f, grace, waited)
	case Terminal(&backend.Status) || f.ended():
		return Decision{Step: Stopped, Backend: backend}
	case f.Sent.StopMissing && !changed && waited < missingAfter:
		return Decision{Again: missingAfter - waited} // the pod was missing and is visible again: the backend's answers lag
	case f.Sent.StopMissing, changed, waited > grace+stopAgainAfter:
		return Decision{Step: Stop, Backend: backend}
	}
	return Decision{Again: stopLook(waited)}
}

// nextGone decides about a pod that the backend does not have after a request to stop it.
func nextGone(f *Facts, grace, waited time.Duration) Decision {
	hidden, gone := hiddenFor(f), f.Now.Sub(f.Sent.GoneSince)
	switch {
	case hidden > 0:
		return Decision{Again: min(hidden, max(waited/2, ReportedWithin))}
	case f.Sent.StopAcked && f.isStopDoubtful(waited-grace):
		return Decision{Again: missingAfter} // no answer confirms no stop; after the grace period, the acknowledged DeletePod is enough
	case f.Reports && !f.ended() && f.Sent.GoneSince.IsZero():
		return Decision{Step: Gone, Again: ReportedWithin} // backends may forget a pod and report its end afterwards
	case !f.ended() && gone < ReportedWithin:
		return Decision{Again: ReportedWithin - gone}
	case f.Sent.StopAcked:
		return Decision{Step: Stopped}
	}
	return nextNotFound(f, waited)
}

// isStopDoubtful reports whether an acknowledged stop still needs confirmation by a clear answer. over is the time since the end of the
// grace period. If a list lacks a pod that GetPod returns, the list may lag.
func (f *Facts) isStopDoubtful(over time.Duration) bool {
	switch {
	case f.ended(), !f.Doubtful && !f.isHidden():
		return false
	case f.hasListGap():
		return over < max(missingAfter, 2*f.Visible)
	}
	return over < missingAfter
}

// hiddenFor returns how long the backend may still hide a running pod because it is new. The result is 0 or less if the pod is not too new,
// was shown once, or has finished.
func hiddenFor(f *Facts) time.Duration {
	if f.Sent.Shown || f.ended() {
		return 0
	}
	former := f.Sent.StopMissing && f.API.Status.Phase != corev1.PodRunning
	return f.shownAt(f.Sent.AttemptedAt, former).Sub(f.Now)
}

// shownAt returns the time by which the backend shows a pod that it received at the time given. If a previous process may have created the
// pod, the time of the restart counts instead.
func (f *Facts) shownAt(given time.Time, former bool) time.Time {
	visible := f.Visible
	if former && given.IsZero() {
		given = f.TakenOver
		if f.Complete {
			visible = min(visible, inFlight)
		}
	}
	return given.Add(visible)
}

// nextNotFound decides about a pod that must stop after two answers that the backend does not have it. These answers confirm the stop,
// except if the backend lacks many expected pods, which takes a while to detect, or if a list contains the pod.
func nextNotFound(f *Facts, waited time.Duration) Decision {
	had := f.Sent.Accepted || HasRun(f.API) || !f.TakenOver.IsZero()
	mayRun := had && !f.ended()
	runs := f.Listed && !f.ended() // a report of the end does not show that the pod runs
	again := missingAfter - waited
	if !f.Sent.MissingSince.IsZero() {
		waited = max(waited, f.Now.Sub(f.Sent.MissingSince))
	}
	switch {
	case had && f.Held > 0:
		return Decision{Again: min(f.Held, missingAfter)}
	case mayRun && !f.Complete && waited < missingAfter:
		return Decision{Again: missingAfter - waited}
	case runs && again > 0:
		return Decision{Again: again}
	case runs:
		return Decision{Step: Stop}
	case mayRun && !f.Unlisted && !f.isLackedSinceStop():
		return Decision{Step: Relist, Again: missingAfter / 2} // newer pods than in the last list may be missing too
	}
	return Decision{Step: Stopped}
}

// isLackedSinceStop reports whether a list that was requested after the stop lacks the pod. If the pod has ended in the API server, no list
// is needed.
func (f *Facts) isLackedSinceStop() bool {
	return Terminal(&f.API.Status) || !f.lackedAt().Before(f.Sent.StopAskedAt)
}
