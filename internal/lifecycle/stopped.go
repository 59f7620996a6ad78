// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// exitUnknown is a kubelet's exit code for a container that it stopped without seeing the end. Exit code 0 would claim an unobserved
// success.
const exitUnknown = 137

// applyStop ends a pod that the backend no longer has, after a confirmed stop or a loss, if the end of its containers was not reported.
// Containers that never ran keep their status.
func applyStop(s *corev1.PodStatus, v View) {
	before := &v.API.Status
	s.ContainerStatuses = endContainers(s.ContainerStatuses, before.ContainerStatuses)
	s.InitContainerStatuses = endContainers(s.InitContainerStatuses, before.InitContainerStatuses)
	s.EphemeralContainerStatuses = endContainers(s.EphemeralContainerStatuses, before.EphemeralContainerStatuses)
	s.Phase = corev1.PodFailed
	if allSucceeded(v.API.Spec.Containers, s.ContainerStatuses) {
		s.Phase = corev1.PodSucceeded
	}
	if v.Failure != nil {
		s.Phase, s.Reason, s.Message = corev1.PodFailed, v.Failure.Reason, v.Failure.Message
	} else if v.SyncError != nil {
		s.Reason, s.Message = "", ""
	}
}

// endContainers returns the statuses, in which every container that has run is terminated.
func endContainers(statuses, before []corev1.ContainerStatus) []corev1.ContainerStatus {
	statuses = slices.Clone(statuses)
	for i := range statuses {
		st := &statuses[i]
		if st.State.Terminated == nil && hasEverRun(st, statusNamed(before, st.Name)) {
			st.State = corev1.ContainerState{Terminated: unknownEnd(st)}
		}
		st.Ready = false
		st.Started = nil
	}
	return statuses
}

// allSucceeded reports whether every container is known to have ended without an error.
func allSucceeded(spec []corev1.Container, statuses []corev1.ContainerStatus) bool {
	succeeded := func(st *corev1.ContainerStatus) bool {
		return st != nil && st.State.Terminated != nil && st.State.Terminated.ExitCode == 0
	}
	for i := range statuses {
		if !succeeded(&statuses[i]) {
			return false
		}
	}
	return !slices.ContainsFunc(spec, func(c corev1.Container) bool { return !succeeded(statusNamed(statuses, c.Name)) })
}

func unknownEnd(st *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	end := &corev1.ContainerStateTerminated{
		ExitCode:    exitUnknown,
		Reason:      reasonStatusUnknown,
		Message:     "the backend stopped the pod without telling how this container ended",
		ContainerID: st.ContainerID,
	}
	if st.State.Running != nil {
		end.StartedAt = st.State.Running.StartedAt
	}
	return end
}
