// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
	kitstatus "github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

// setPhase sets phase, reason and message. A terminal phase is not reported before the pod has ended, and never changes.
func (f *facts) setPhase(s *corev1.PodStatus) {
	last := &f.pod.Status
	if isTerminal(last.Phase) {
		s.Phase, s.Reason, s.Message = last.Phase, last.Reason, last.Message
		return
	}
	s.Phase = f.computePhase(s)
	reason, message, evicted := f.view.Evicted()
	switch {
	case evicted && f.mem.Finished():
		s.Phase = corev1.PodFailed
	case isTerminal(s.Phase) && !f.mem.Finished():
		s.Phase = corev1.PodRunning // until the end of the pod
		if last.Phase != corev1.PodRunning && !f.view.Initialized() {
			s.Phase = corev1.PodPending
		}
	case !isTerminal(s.Phase) && f.mem.Finished():
		s.Phase = corev1.PodFailed
	}
	if evicted && s.Phase == corev1.PodFailed {
		s.Reason, s.Message = reason, message
	}
}

func isTerminal(p corev1.PodPhase) bool { return p == corev1.PodSucceeded || p == corev1.PodFailed }

// count counts containers by their state.
type count struct{ pending, running, waiting, stopped, final, succeeded int }

// computePhase returns the phase for the statuses of the containers.
func (f *facts) computePhase(s *corev1.PodStatus) corev1.PodPhase {
	var n count
	for i := range f.pod.Spec.InitContainers {
		if f.countInit(&n, &f.pod.Spec.InitContainers[i], &s.InitContainerStatuses[i]) {
			return corev1.PodFailed
		}
	}
	for i := range f.pod.Spec.Containers {
		f.countMain(&n, &f.pod.Spec.Containers[i], &s.ContainerStatuses[i])
	}
	switch {
	case n.pending > 0, n.waiting > 0:
		return corev1.PodPending
	case n.running > 0:
		return corev1.PodRunning
	case n.stopped == 0:
		return corev1.PodPending
	case n.stopped != n.final && !f.mem.Finished():
		return corev1.PodRunning
	case n.stopped == n.succeeded:
		return corev1.PodSucceeded
	}
	return corev1.PodFailed
}

// countInit reports whether the init container has failed for good.
func (f *facts) countInit(n *count, c *corev1.Container, s *corev1.ContainerStatus) (failed bool) {
	end := lastEnd(s)
	if plan.Sidecar(c) {
		started := s.Started != nil && *s.Started
		switch {
		case s.State.Running != nil:
			n.running++
			if !started && !f.view.Initialized() {
				n.pending++
			}
		case end == nil:
			n.waiting++
		}
		return false
	}
	if end == nil {
		n.pending++
		return false
	}
	return end.ExitCode != 0 && !f.isRestartable(c, end)
}

func (f *facts) countMain(n *count, c *corev1.Container, s *corev1.ContainerStatus) {
	end := lastEnd(s)
	switch {
	case s.State.Running != nil:
		n.running++
	case end == nil:
		n.waiting++
	default:
		n.stopped++
		if !f.isRestartable(c, end) {
			n.final++
		}
		if s.State.Terminated != nil && end.ExitCode == 0 {
			n.succeeded++
		}
	}
}

// isRestartable reports whether a container restarts after such an end.
func (f *facts) isRestartable(c *corev1.Container, end *corev1.ContainerStateTerminated) bool {
	if list := f.view.Instances(c.Name); len(list) > 0 && end.ContainerID == f.containerID(&list[0]) {
		return f.view.Restarts(c, &list[0])
	}
	return kitstatus.RestartsAfter(f.pod, c, end.ExitCode)
}

// lastEnd returns the last end of a container that is not running, or nil if it never ran.
func lastEnd(s *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	switch {
	case s.State.Running != nil:
		return nil
	case s.State.Terminated != nil:
		return s.State.Terminated
	}
	return s.LastTerminationState.Terminated
}

// endAll completes the container statuses of a pod that has ended. A container without a known end counts as failed. Containers that cannot have been
// started, because the pod was not initialized, stay unchanged.
func (f *facts) endAll(s *corev1.PodStatus) {
	if len(f.pod.Spec.InitContainers) == 0 || f.ranMain(s) || f.initsDone(s) {
		markLost(s.ContainerStatuses)
	}
	inits := s.InitContainerStatuses
	for len(inits) > 1 && inits[len(inits)-1].State.Waiting != nil && inits[len(inits)-1].LastTerminationState.Terminated == nil {
		inits = inits[:len(inits)-1]
	}
	markLost(inits)
}

func (f *facts) ranMain(s *corev1.PodStatus) bool {
	for i := range s.ContainerStatuses {
		if st := &s.ContainerStatuses[i]; st.State.Waiting == nil || st.LastTerminationState.Terminated != nil {
			return true
		}
	}
	return false
}

func (f *facts) initsDone(s *corev1.PodStatus) bool {
	end := lastEnd(&s.InitContainerStatuses[len(s.InitContainerStatuses)-1])
	return end != nil && end.ExitCode == 0
}

func markLost(list []corev1.ContainerStatus) {
	for i := range list {
		if s := &list[i]; s.State.Terminated == nil {
			s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				Reason: reasonUnknown, Message: notLocated, ExitCode: exitUnknown,
			}}
			s.Ready = false
		}
	}
}
