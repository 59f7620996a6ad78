// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Write is the next action of the status lane for one pod.
type Write int

const (
	// Keep writes nothing.
	Keep Write = iota
	// Patch writes the status that Publish returned.
	Patch
	// Remove deletes the API object.
	Remove
)

// Publish decides which write the API server needs for one pod. It also returns the status that the pod should
// have; with Keep, this is the status that the pod has.
func Publish(v View) (Write, corev1.PodStatus) {
	if v.API == nil {
		return Keep, corev1.PodStatus{}
	}
	want := compose(v)
	deleting := v.API.DeletionTimestamp != nil
	stopped := v.hasStopped()
	changed := !sameStatus(&want, &v.API.Status)
	switch {
	case isLeaving(v.API):
		if stopped {
			return Remove, want // a previous removal request was not completed
		}
		return Keep, v.API.Status
	case !deleting || !stopped:
		if changed {
			return Patch, want
		}
		return Keep, v.API.Status
	case changed && v.needsFinalStatus():
		return Patch, want // the status must be written before the object is removed
	case len(v.API.Finalizers) > 0 && Grace(v.API) == 0:
		return Keep, v.API.Status // already requested; a finalizer holds the object
	}
	return Remove, want
}

// hasStopped reports whether the pod has stopped: the backend has confirmed it, or reported its end after a stop request.
func (v *View) hasStopped() bool {
	if v.Stopped || !v.StopAsked {
		return v.Stopped
	}
	return v.Report != nil && Terminal(v.Report) && !v.Relapsed
}

// needsFinalStatus reports whether the last status of a stopped pod must be written: it was not written yet, and the pod was at the
// backend, or finalizers still hold its object.
func (v *View) needsFinalStatus() bool {
	if v.FinalStatus {
		return false
	}
	return v.Attempted || v.Report != nil || len(v.API.Finalizers) > 0
}

// isLeaving reports whether the API server will remove the pod in any case. A write then removes the object of that name
// (ShouldDeleteDuringUpdate in the API server's registry), which may already be the next pod.
func isLeaving(pod *corev1.Pod) bool {
	grace := pod.DeletionGracePeriodSeconds // nil unless it is deleted
	return grace != nil && *grace == 0 && len(pod.Finalizers) == 0
}

// compose returns the status that the pod in the API server should have. It starts from the current status, so
// the fields of other writers stay. The result shares all unchanged parts with the current status and with the
// report. Therefore compose never writes through a pointer or into a list; it replaces them.
func compose(v View) corev1.PodStatus {
	s := v.API.Status
	absorbed := Terminal(&s)
	if v.Report != nil {
		applyReport(&s, v.API, v.Report, absorbed, v.Now)
		// A published host IP does not change with the node's address, because the environment of the containers keeps it too.
		if s.HostIP == "" && len(v.HostIPs) > 0 && !absorbed {
			s.HostIP, s.HostIPs = v.HostIPs[0].IP, v.HostIPs
		}
	}
	if !absorbed {
		applySyncError(&s, v)
		mustStop := v.API.DeletionTimestamp != nil || v.Failure != nil
		switch {
		case v.Stopped && mustStop && !Terminal(&s):
			applyStop(&s, v)
		case v.Failure != nil && Terminal(&s):
			s.Phase, s.Reason, s.Message = corev1.PodFailed, v.Failure.Reason, v.Failure.Message
		}
	}
	if v.NoEphemeral && len(v.API.Spec.EphemeralContainers) > len(s.EphemeralContainerStatuses) {
		s.EphemeralContainerStatuses = unsupportedContainers(v.API.Spec.EphemeralContainers)
	}
	// Without a status, the generation alone needs no write. With a status from before the change, the generation would claim that the
	// change is complete.
	if v.Report != nil || Terminal(&s) {
		s.ObservedGeneration = max(s.ObservedGeneration, min(v.Generation, v.Reflected))
	}
	if v.Report != nil || Terminal(&s) && !absorbed {
		s.Conditions = conditions(v, &s)
	}
	truncateTimes(&s)
	return s
}

// applyReport applies the provider's status to s within the rules: a terminal phase stays, restart counts never decrease, and fields that
// the report omits are kept.
func applyReport(s *corev1.PodStatus, pod *corev1.Pod, r *corev1.PodStatus, absorbed bool, now time.Time) {
	if !absorbed {
		if r.Phase != "" {
			s.Phase = r.Phase
		}
		s.Reason, s.Message = r.Reason, r.Message
	}
	if r.HostIP != "" || len(r.HostIPs) > 0 {
		s.HostIPs = r.HostIPs
		if len(s.HostIPs) == 0 {
			s.HostIPs = []corev1.HostIP{{IP: r.HostIP}}
		}
		s.HostIP = s.HostIPs[0].IP // the API server requires it
	}
	if r.PodIP != "" || len(r.PodIPs) > 0 {
		s.PodIPs = r.PodIPs
		if len(s.PodIPs) == 0 {
			s.PodIPs = []corev1.PodIP{{IP: r.PodIP}}
		}
		s.PodIP = s.PodIPs[0].IP // as above
	}
	if s.StartTime == nil {
		s.StartTime = r.StartTime
		if s.StartTime == nil {
			s.StartTime = &metav1.Time{Time: now}
		}
	}
	ended := Terminal(s)
	s.InitContainerStatuses = mergeContainers(s.InitContainerStatuses, r.InitContainerStatuses, ended, byPolicy(pod))
	s.ContainerStatuses = mergeContainers(s.ContainerStatuses, r.ContainerStatuses, ended, byPolicy(pod))
	s.EphemeralContainerStatuses = mergeContainers(s.EphemeralContainerStatuses, r.EphemeralContainerStatuses, ended, neverRestarts)
	if r.Resize != "" {
		s.Resize = r.Resize
	}
	if r.Resources != nil {
		s.Resources = r.Resources
	}
	if r.AllocatedResources != nil {
		s.AllocatedResources = r.AllocatedResources
	}
}

// applySyncError shows the error that keeps the pod from its desired state, and removes it once it is resolved.
func applySyncError(s *corev1.PodStatus, v View) {
	t := v.SyncError
	if t == nil {
		// The message of a pod that has run comes from the backend, whose status is requested next.
		if v.Report == nil && s.Reason == ReasonProviderFailed && s.Phase == corev1.PodPending {
			s.Reason, s.Message = "", ""
			endWaiting(s)
		}
		return
	}
	s.Reason, s.Message = t.Reason, t.Message
	if s.Phase == "" {
		s.Phase = corev1.PodPending
	}
	if v.Report != nil {
		return
	}
	if t.WaitingReason == "" {
		endWaiting(s)
		return
	}
	s.ContainerStatuses = nil
	for _, c := range v.API.Spec.Containers {
		waiting := &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
		if t.Container == "" || c.Name == t.Container {
			waiting = &corev1.ContainerStateWaiting{Reason: t.WaitingReason, Message: t.Message}
		}
		s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, State: corev1.ContainerState{Waiting: waiting},
		})
	}
}

// endWaiting changes the reason of containers that waited for their configuration: they now wait for their start. Only a SyncError has
// another reason for them to wait.
func endWaiting(s *corev1.PodStatus) {
	s.ContainerStatuses = slices.Clone(s.ContainerStatuses)
	for i := range s.ContainerStatuses {
		if w := s.ContainerStatuses[i].State.Waiting; w != nil && w.Reason == WaitingConfig {
			s.ContainerStatuses[i].State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
		}
	}
}
