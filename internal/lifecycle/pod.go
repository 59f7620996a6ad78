// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// SamePod reports whether a and b are the same pod.
func SamePod(a, b *corev1.Pod) bool { return a.UID == b.UID }

// Terminal reports whether the pod has Succeeded or Failed.
func Terminal(s *corev1.PodStatus) bool {
	return s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed
}

// hasEnded reports whether the pod has Succeeded or Failed, and is not deleted.
func hasEnded(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil && Terminal(&pod.Status) }

// Grace returns the grace period for a stop of the pod, in seconds. It comes from the deletion, else from the
// spec, else from the default of the API server.
func Grace(pod *corev1.Pod) int64 {
	switch {
	case pod.DeletionGracePeriodSeconds != nil:
		return *pod.DeletionGracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		return *pod.Spec.TerminationGracePeriodSeconds
	}
	return corev1.DefaultTerminationGracePeriodSeconds
}

// ForeignOS reports whether a pod that has not run yet needs another operating system than the node's. An empty
// os means that the node does not report its system.
func ForeignOS(pod *corev1.Pod, os string) bool {
	if os == "" || pod.Spec.OS == nil {
		return false
	}
	unborn := pod.Status.Phase == "" || pod.Status.Phase == corev1.PodPending
	return unborn && string(pod.Spec.OS.Name) != os
}

// Deadline returns when the pod must have ended (spec.activeDeadlineSeconds
// after status.startTime), and false if never.
func Deadline(pod *corev1.Pod) (time.Time, bool) {
	if pod.Spec.ActiveDeadlineSeconds == nil || pod.Status.StartTime == nil {
		return time.Time{}, false
	}
	return pod.Status.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second), true
}

// HasRun reports whether, according to its status, the backend had the pod (before a restart, for example) and the pod has not ended.
func HasRun(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning || pod.Status.StartTime != nil && !Terminal(&pod.Status)
}

// OrphanGrace returns the grace period of a pod that only the backend has.
func OrphanGrace(pod *corev1.Pod) time.Duration { return time.Duration(Grace(pod)) * time.Second }

// CriticalPriority is the lowest priority of pods that are critical to the system.
const CriticalPriority int32 = 2_000_000_000
