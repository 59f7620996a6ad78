// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Sent is the sync lane's record of the requests to the backend about one pod, and of their results.
type Sent struct {
	UID types.UID
	// SpecVersion is the version of the spec that the backend accepted last.
	SpecVersion uint64
	// Attempted reports whether CreatePod was called, whatever its result. AttemptedAt is the time of the last
	// call; it is zero if the call was before a restart.
	Attempted   bool
	AttemptedAt time.Time
	// Accepted reports whether the backend acknowledged the pod or was seen to have it.
	Accepted   bool
	AcceptedAt time.Time
	// Updating reports whether UpdatePod was called and has not succeeded since. It is then unknown which
	// version of the pod the backend has.
	Updating bool
	// Recreate reports whether the backend lost the pod and must create it again.
	Recreate bool
	// MissingSince is when the backend was first seen without an accepted pod.
	MissingSince time.Time
	// Shown reports whether the backend has shown the pod since it received the pod.
	Shown bool
	// StopAskedAt and StopGrace (seconds) are the last stop request, if any.
	StopAskedAt time.Time
	StopGrace   int64
	// StopAcked reports whether a DeletePod returned without error. StopMissing reports whether the backend did
	// not have the pod then.
	StopAcked   bool
	StopMissing bool
	// GoneSince is when the backend was first seen without the pod after the last stop request, if the provider
	// reports.
	GoneSince time.Time
}

// Started reports whether the backend may have the pod: it was asked to create the pod, now or before a restart.
func Started(pod *corev1.Pod, sent Sent) bool { return sent.Attempted || HasRun(pod) }

// Expected reports whether the backend should have the pod: the backend has accepted it, before or since a
// restart, and the pod does not have to stop.
func Expected(api *corev1.Pod, sent *Sent, failure *PodFailure) bool {
	mustStop := api.DeletionTimestamp != nil || failure != nil
	if mustStop || sent.stopAsked() || Terminal(&api.Status) {
		return false
	}
	return sent.Accepted || !sent.Recreate && HasRun(api)
}

// stopAsked reports whether the backend was asked to stop the pod.
func (s *Sent) stopAsked() bool { return !s.StopAskedAt.IsZero() }

// Missed reports whether a pod that the backend does not have counts as missing. It counts if the backend should have it, or if DeletePod
// returned not-found. A pod that had to stop before a restart may have stopped during the restart.
func Missed(api *corev1.Pod, sent *Sent, failure *PodFailure) bool {
	switch {
	case Expected(api, sent, failure):
		return true
	case failure != nil && failure.Reason == ReasonLost: // already decided on evidence
		return false
	}
	return sent.StopMissing && sent.Accepted && !Terminal(&api.Status)
}

// Young reports whether the backend may not show the pod yet, because it is new.
func Young(sent *Sent, visible time.Duration, now time.Time) bool {
	return sent.Accepted && !sent.Shown && now.Before(sent.AcceptedAt.Add(visible))
}
