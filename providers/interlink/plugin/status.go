// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// tell converts the provider's status of a pod to the protocol. The result has every container of the spec, and
// Terminated only for containers that are not started again. over means that nothing of the pod runs any more,
// whatever the status reports.
func tell(pod *corev1.Pod, status *corev1.PodStatus, job string, over bool) wire.PodStatus {
	over = over || ended(status.Phase)
	t := wire.PodStatus{Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID), JobID: job, Containers: []corev1.ContainerStatus{}, InitContainers: []corev1.ContainerStatus{}}
	failed := false // an init container failed: later ones were never started
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		s := said(c, status.InitContainerStatuses)
		sidecar := podspec.IsSidecar(c)
		if over {
			if !failed {
				s = finished(s, status)
			}
			failed = failed || !sidecar && s.State.Terminated != nil && s.State.Terminated.ExitCode != 0
		} else if s.State.Terminated != nil && (sidecar || s.State.Terminated.ExitCode != 0) && podstatus.RestartsAfter(pod, c, s.State.Terminated.ExitCode) {
			s = waiting(s)
		}
		t.InitContainers = append(t.InitContainers, s)
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		s := said(c, status.ContainerStatuses)
		switch {
		case over && !failed:
			s = finished(s, status)
		case !over && s.State.Terminated != nil && podstatus.RestartsAfter(pod, c, s.State.Terminated.ExitCode):
			s = waiting(s)
		}
		t.Containers = append(t.Containers, s)
	}
	return t
}

// said returns the reported state of a container, or Waiting if the status does not report the container.
func said(c *corev1.Container, list []corev1.ContainerStatus) corev1.ContainerStatus {
	for i := range list {
		if s := list[i]; s.Name == c.Name {
			if s.State == (corev1.ContainerState{}) {
				s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
			}
			return *s.DeepCopy()
		}
	}
	return corev1.ContainerStatus{Name: c.Name, Image: c.Image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}
}

// waiting turns the status of an ended container into Waiting, because the container is started again.
func waiting(s corev1.ContainerStatus) corev1.ContainerStatus {
	s.LastTerminationState = s.State
	s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	s.Ready = false
	return s
}

// finished returns the status of a container in a pod with nothing running. A container without a known end gets
// an end with an unknown cause.
func finished(s corev1.ContainerStatus, status *corev1.PodStatus) corev1.ContainerStatus {
	if s.State.Terminated != nil {
		return s
	}
	end := &corev1.ContainerStateTerminated{ExitCode: 137, Reason: wire.ReasonLost, Message: status.Message, ContainerID: s.ContainerID}
	if end.Message == "" {
		end.Message = "nobody saw how the container ended"
	}
	if s.State.Running != nil {
		end.StartedAt = s.State.Running.StartedAt
	}
	s.State, s.Ready = corev1.ContainerState{Terminated: end}, false
	return s
}
