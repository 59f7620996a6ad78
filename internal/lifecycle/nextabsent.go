// SPDX-License-Identifier: Apache-2.0

package lifecycle

import corev1 "k8s.io/api/core/v1"

// nextAbsent decides about a wanted pod that the backend does not have.
func nextAbsent(f *Facts) Decision {
	switch {
	case f.finished():
		return Decision{} // the backend forgets ended pods
	case f.mayBeOmitted():
		return Decision{Step: Wait, Again: askAgain}
	case f.isNew():
		return Decision{Step: Create}
	case f.Sent.MissingSince.IsZero():
		return Decision{Step: Missing, Again: missingAfter}
	}
	lostAt := f.Sent.MissingSince.Add(missingAfter)
	if shown := f.shownAt(f.Sent.AcceptedAt, true); shown.After(lostAt) {
		lostAt = shown // a previous process may have recreated it just before it ended
	}
	switch left := lostAt.Sub(f.Now); {
	case left > 0:
		return Decision{Again: left}
	case f.Held > 0:
		return Decision{Again: min(f.Held, missingAfter)}
	case f.Listed:
		return Decision{Again: missingAfter} // GetPod and GetPods disagree: presence wins
	case !f.Taken.Has(ReadLive) && (f.lackedAt().Before(lostAt) || f.Now.Sub(f.lackedAt()) > confirmedFor):
		// An older list shows neither newer pods nor whether many of them are missing.
		return Decision{Step: Relist, Again: missingAfter / 2}
	}
	return nextLost(f)
}

// isNew reports whether the backend never had the pod, or must create it again. A pod that the provider reports,
// and that this process has not tried to create, is at the backend from before a restart.
func (f *Facts) isNew() bool {
	if f.Sent.Accepted || f.Sent.Recreate {
		return !f.Sent.Accepted
	}
	return !HasRun(f.API) && (f.Reported != ReportedAlive || f.Sent.Attempted)
}

// mayBeOmitted reports whether the list may omit the wanted pod, because it also omits the pod that GetPod returned for the name. The
// wanted pod may exist although CreatePod failed, or because a previous process created it just before it ended. Some backends never list
// ended pods: the list is trusted once the wanted pod would be visible.
func (f *Facts) mayBeOmitted() bool {
	return f.hasListGap() && !f.Sent.Accepted && f.Now.Before(f.shownAt(f.Sent.AttemptedAt, true))
}

// nextLost decides about a pod that the backend lost. The restart policy decides whether the pod is created again or has failed. A live
// read must first confirm that the pod still exists: the cache may still have a pod that was deleted and stopped.
func nextLost(f *Facts) Decision {
	switch {
	case !f.Taken.Has(ReadLive):
		return Decision{Step: ReadLive}
	case f.Live == nil || f.Live.UID != f.API.UID:
		return Decision{Step: Wait, Again: askAgain}
	case f.API.Spec.RestartPolicy == corev1.RestartPolicyNever && (f.Sent.Accepted || f.API.Status.Phase == corev1.PodRunning):
		return Decision{Step: Fail}
	}
	return Decision{Step: Recreate}
}
