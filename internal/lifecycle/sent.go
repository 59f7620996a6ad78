// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Sent is what the sync lane remembers about one pod: what the backend was
// told and what it acknowledged. The zero value knows nothing.
type Sent struct {
	UID types.UID
	// Generation is that of the pod which the backend was created with or accepted
	// last. SpecVersion is that of the pod that it accepted last.
	Generation  int64
	SpecVersion uint64
	// Attempted says that CreatePod was called, with whatever result, and AttemptedAt when last; zero if that was
	// before a restart.
	Attempted   bool
	AttemptedAt time.Time
	// Accepted says that the backend acknowledged the pod or was seen to have it.
	Accepted   bool
	AcceptedAt time.Time
	// Updating says that UpdatePod was called and has not succeeded since: nobody knows which
	// pod the backend has.
	Updating bool
	// Recreate says that the backend lost the pod and is to get it again.
	Recreate bool
	// MissingSince is when the backend was first seen without an accepted pod.
	MissingSince time.Time
	// Shown says that the backend has shown the pod since it was given it.
	Shown bool
	// StopAskedAt and StopGrace (seconds) are the last stop request, if any.
	StopAskedAt time.Time
	StopGrace   int64
	// StopAcked says that a DeletePod returned without error, StopMissing that the backend
	// did not have the pod then.
	StopAcked   bool
	StopMissing bool
	// GoneSince is when the backend was first seen without the pod after the last stop request, if it reports.
	GoneSince time.Time
}

// Started reports whether the backend may have the pod: it was asked to create
// it, now or before a restart.
func Started(pod *corev1.Pod, sent Sent) bool { return sent.Attempted || HasRun(pod) }

// Expected reports whether the backend should have the pod: it has accepted it, since its start or before, and nobody
// wants it to stop.
func Expected(api *corev1.Pod, sent *Sent, failure *PodFailure) bool {
	if api.DeletionTimestamp != nil || failure != nil || sent.stopAsked() || Terminal(&api.Status) {
		return false
	}
	return sent.Accepted || !sent.Recreate && HasRun(api)
}

// stopAsked reports whether the backend was asked to stop the pod.
func (s *Sent) stopAsked() bool { return !s.StopAskedAt.IsZero() }

// Missed reports whether a pod that the backend does not have counts among the missing: it should have it, or does
// not know it when it is to stop. One that is to stop since before a restart may have stopped in it.
func Missed(api *corev1.Pod, sent *Sent, failure *PodFailure) bool {
	givenUp := failure != nil && failure.Reason == ReasonLost // on evidence
	stops := sent.StopMissing && !givenUp && sent.Accepted && !Terminal(&api.Status)
	return stops || Expected(api, sent, failure)
}

// Young reports whether the backend may not have had the time to show the pod yet.
func Young(sent *Sent, visible time.Duration, now time.Time) bool {
	return sent.Accepted && !sent.Shown && now.Before(sent.AcceptedAt.Add(visible))
}
