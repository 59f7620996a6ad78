// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
	kitstatus "github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

// Reason and message for a container whose end was not observed.
const (
	exitUnknown   = 137
	reasonUnknown = "ContainerStatusUnknown"
	notLocated    = "The container could not be located when the pod was terminated"
)

// containerStatus returns the status of one container.
func (f *facts) containerStatus(c *corev1.Container, k kind) corev1.ContainerStatus {
	list := f.shownInstances(c)
	old := f.view.Status(c.Name)
	var s corev1.ContainerStatus
	if len(list) == 0 {
		s = f.absentStatus(c, old)
		f.startedAndReady(&s, c, nil, k)
	} else {
		s = f.presentStatus(c, list, old)
		f.startedAndReady(&s, c, &list[0], k)
	}
	s.VolumeMounts = f.mountStatuses(c)
	if k == initKind && f.treatedAsDone(c, &s, len(list)) {
		return s
	}
	f.setWaiting(&s, c, list, k)
	return s
}

// shownInstances returns the instances for the status, without an instance whose postStart hook still runs: a container
// counts as running after its hook is done.
func (f *facts) shownInstances(c *corev1.Container) []plan.Container {
	list := f.view.Instances(c.Name)
	if len(list) == 0 || !f.mem.Starting(c.Name) {
		return list
	}
	hook := c.Lifecycle != nil && c.Lifecycle.PostStart != nil
	if state := list[0].State; state == plan.Created || state == plan.Running && hook {
		return list[1:]
	}
	return list
}

// presentStatus returns the status of a container with instances in the runtime.
func (f *facts) presentStatus(c *corev1.Container, list []plan.Container, old *corev1.ContainerStatus) corev1.ContainerStatus {
	i := &list[0]
	s := corev1.ContainerStatus{
		Name:         c.Name,
		Image:        i.Image,
		ImageID:      i.ImageRef,
		ContainerID:  f.containerID(i),
		RestartCount: int32(i.Attempt),
		State:        f.instanceState(i),
		User:         i.User,
		StopSignal:   i.StopSignal,
	}
	s.AllocatedResources, s.Resources = f.containerResources(c, i, old)
	switch {
	case len(list) > 1:
		s.LastTerminationState = f.instanceState(&list[1])
		s.LastTerminationState.Running, s.LastTerminationState.Waiting = nil, nil
	case old == nil:
	case old.ContainerID != s.ContainerID && old.State.Terminated != nil:
		s.LastTerminationState.Terminated = old.State.Terminated
	default:
		s.LastTerminationState.Terminated = old.LastTerminationState.Terminated
	}
	if old != nil {
		s.RestartCount = max(s.RestartCount, old.RestartCount)
	}
	return s
}

// instanceState returns the state of one instance.
func (f *facts) instanceState(i *plan.Container) corev1.ContainerState {
	switch i.State {
	case plan.Running:
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Time{Time: i.StartedAt}}}
	case plan.Exited:
		reason := "Completed"
		if i.ExitCode != 0 {
			reason = "Error"
		}
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: i.ExitCode, Reason: cmp.Or(i.Reason, reason), Message: i.Message, ContainerID: f.containerID(i),
			StartedAt: metav1.Time{Time: i.StartedAt}, FinishedAt: metav1.Time{Time: i.FinishedAt},
		}}
	}
	return f.initialState()
}

func (f *facts) containerID(i *plan.Container) string { return f.seen.Runtime + "://" + i.ID }

// initialState returns the state of a container before it exists.
func (f *facts) initialState() corev1.ContainerState {
	reason := "ContainerCreating"
	if len(f.pod.Spec.InitContainers) > 0 {
		reason = "PodInitializing"
	}
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: f.noRoom()}}
}

// noRoom returns the message of a pod that waits for disk space, which is the same at every attempt, or "" if it does not wait. As in a kubelet, all
// other failures of volumes and sandboxes appear in events only.
func (f *facts) noRoom() string {
	for _, words := range []string{"no space left on device", "disk quota exceeded"} { // messages of the kernel, which runtimes pass on
		if strings.Contains(f.mem.Blocked(), words) {
			return "The pod waits for room on the disk of the node: " + words
		}
	}
	return ""
}

// absentStatus returns the status of a container without an instance in the runtime: it has not run yet, or the runtime has lost it.
func (f *facts) absentStatus(c *corev1.Container, old *corev1.ContainerStatus) corev1.ContainerStatus {
	s := corev1.ContainerStatus{Name: c.Name, Image: c.Image, State: f.initialState()}
	switch {
	case old == nil:
		return s
	case old.State.Terminated != nil:
		return *old
	}
	s.RestartCount, s.LastTerminationState = old.RestartCount, old.LastTerminationState
	if old.State.Running != nil && s.LastTerminationState.Terminated == nil {
		s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			Reason: reasonUnknown, ExitCode: exitUnknown, ContainerID: old.ContainerID, StartedAt: old.State.Running.StartedAt,
			Message: "The container could not be located when the pod was deleted.  The container used to be Running",
		}
	}
	return s
}

// treatedAsDone shows a lost regular init container as done, if main containers were created. It reports whether the status is final.
func (f *facts) treatedAsDone(c *corev1.Container, s *corev1.ContainerStatus, instances int) bool {
	if t := s.State.Terminated; t != nil && t.ExitCode == 0 {
		return true
	}
	if instances > 0 || plan.Sidecar(c) || s.State.Waiting == nil || !f.view.Initialized() {
		return false
	}
	s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Reason:  "Completed",
		Message: "Unable to get init container status from container runtime and pod has been initialized, treat it as exited normally",
	}}
	s.Ready = true
	return true
}

// setWaiting shows why a container has not started again: its end becomes the last state.
func (f *facts) setWaiting(s *corev1.ContainerStatus, c *corev1.Container, list []plan.Container, k kind) {
	why := f.view.Waiting(c.Name)
	if why == nil && f.isReplaced(c, list) {
		why = f.initialState().Waiting
	}
	if _, _, evicted := f.view.Evicted(); why == nil || s.State.Running != nil || evicted || f.mem.Deleted() {
		return
	}
	if len(list) > 0 && list[0].State != plan.Created && (k == ephemeralKind || !f.view.Restarts(c, &list[0])) {
		return
	}
	if s.State.Terminated != nil {
		s.LastTerminationState = s.State
	}
	s.State = corev1.ContainerState{Waiting: why.DeepCopy()}
}

// isReplaced reports whether a container will restart although its policy does not allow it, as after a change of the image. If its end were
// reported, the API server would reject that the container runs again.
func (f *facts) isReplaced(c *corev1.Container, list []plan.Container) bool {
	return len(list) > 0 && list[0].State == plan.Exited && f.view.Restarts(c, &list[0]) &&
		!kitstatus.RestartsAfter(f.pod, c, list[0].ExitCode) && !plan.MayRestartAll(f.pod)
}

// startedAndReady sets started and ready, except for ephemeral containers. A regular init container is ready
// when it is done.
func (f *facts) startedAndReady(s *corev1.ContainerStatus, c *corev1.Container, i *plan.Container, k kind) {
	s.Ready = false
	if k == ephemeralKind {
		return
	}
	started := i != nil && f.view.Started(c, i)
	s.Started = &started
	switch end := s.State.Terminated; {
	case k == initKind && !plan.Sidecar(c):
		s.Ready = end != nil && end.ExitCode == 0
	case started:
		s.Ready = f.view.Ready(c, i)
	}
}
