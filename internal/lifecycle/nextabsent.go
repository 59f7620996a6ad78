// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	corev1 "k8s.io/api/core/v1"
)

// messageLost is the message of a pod that has failed because the backend lost it.
const messageLost = "the backend no longer has the pod"

// nextAbsent decides about a wanted pod that the backend does not have.
func nextAbsent(f *Facts) Decision {
	switch {
	case f.Finished:
		return Decision{} // the backend forgets ended pods
	case !f.Sent.Accepted && (f.Sent.Recreate || !HasRun(f.API) && !f.madeBefore()):
		return nextCreate(f)
	case f.Sent.MissingSince.IsZero():
		return Decision{Step: Missing, Again: missingAfter}
	}
	lostAt := f.Sent.MissingSince.Add(missingAfter)
	if shown := f.shownAt(f.Sent.AcceptedAt, true); shown.After(lostAt) {
		lostAt = shown // a former process may have created it anew in its last moment
	}
	switch left := lostAt.Sub(f.Now); {
	case left > 0:
		return Decision{Again: left}
	case f.Held > 0:
		return Decision{Again: min(f.Held, missingAfter)}
	case f.Listed:
		return Decision{Again: missingAfter} // GetPod and GetPods disagree: presence is believed
	case !f.Taken.Has(ReadLive) && (f.lackedAt().Before(lostAt) || f.Now.Sub(f.lackedAt()) > confirmedFor):
		// An older list does not show what happened to newer pods, and so it does not show whether many are
		// missing.
		return Decision{Step: Relist, Again: missingAfter / 2}
	}
	return nextLost(f)
}

// madeBefore reports whether the provider reports a pod that this process has not tried to create. The backend
// then has the pod from before a restart.
func (f *Facts) madeBefore() bool { return f.Runs && !f.Sent.Attempted }

// nextCreate decides about a pod that the backend never had, or that must be created again.
func nextCreate(f *Facts) Decision {
	switch {
	case !f.Taken.Has(Admit):
		return Decision{Step: Admit}
	case f.Unsupported != "": // a pod that should fail has already failed
		return Decision{Step: Unsupported}
	}
	return Decision{Step: Create}
}

// nextLost decides about a pod that the backend lost. The restart policy decides whether the pod is created
// again or has failed. A live read must first confirm that the pod still exists: an older view of the API server
// may show a pod after its deletion and stop.
func nextLost(f *Facts) Decision {
	switch {
	case !f.Taken.Has(ReadLive):
		return Decision{Step: ReadLive}
	case f.Live == nil || f.Live.UID != f.API.UID:
		return Decision{Step: Wait, Again: askAgain}
	case f.API.Spec.RestartPolicy == corev1.RestartPolicyNever && (f.Sent.Accepted || f.API.Status.Phase == corev1.PodRunning):
		return Decision{Step: Fail, Failure: &PodFailure{Reason: ReasonLost, Message: messageLost}}
	}
	return Decision{Step: Recreate}
}
