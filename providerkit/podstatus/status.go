// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons in the status of a container, as a kubelet gives them.
const (
	reasonCreating     = "ContainerCreating"
	reasonInitializing = "PodInitializing"
	reasonCompleted    = "Completed"
	reasonError        = "Error"
	// reasonUnknown is the reason of a container with an unknown end.
	reasonUnknown = "ContainerStatusUnknown"
)

// Status returns the status of pod: phase, reason and message, addresses, and every container of the spec in its order. Of pod, only the
// spec is used. Neither argument is changed.
func Status(pod *corev1.Pod, seen Pod) corev1.PodStatus {
	f := facts{pod: pod, seen: map[string]*Container{}}
	for i := range seen.Containers {
		f.seen[seen.Containers[i].Name] = &seen.Containers[i]
	}
	f.begun = f.anyMain(func(c *Container) bool { return c.State == Running || ran(c) || c.State == Exited && started(c) })
	s := corev1.PodStatus{Phase: f.phase(&seen), Reason: seen.Reason, Message: seen.Message}
	if !seen.StartedAt.IsZero() {
		s.StartTime = &metav1.Time{Time: seen.StartedAt}
	}
	for _, ip := range seen.IPs {
		s.PodIPs = append(s.PodIPs, corev1.PodIP{IP: ip})
	}
	for _, ip := range seen.HostIPs {
		s.HostIPs = append(s.HostIPs, corev1.HostIP{IP: ip})
	}
	if len(seen.IPs) > 0 {
		s.PodIP = seen.IPs[0]
	}
	if len(seen.HostIPs) > 0 {
		s.HostIP = seen.HostIPs[0]
	}
	for i := range pod.Spec.InitContainers {
		s.InitContainerStatuses = append(s.InitContainerStatuses, f.init(&pod.Spec.InitContainers[i]))
	}
	for i := range pod.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, f.container(&pod.Spec.Containers[i]))
	}
	for i := range pod.Spec.EphemeralContainers {
		c := (*corev1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		status := f.container(c)
		status.Started, status.Ready = nil, false // a kubelet sets neither
		s.EphemeralContainerStatuses = append(s.EphemeralContainerStatuses, status)
	}
	return s
}

// facts are the inputs of a status.
type facts struct {
	pod   *corev1.Pod
	seen  map[string]*Container // by name; the state of a missing container is unknown
	begun bool                  // a main container has run, so the init containers are done
}

// of returns the report about a container.
func (f *facts) of(c *corev1.Container) *Container {
	if s := f.seen[c.Name]; s != nil {
		return s
	}
	return &Container{Name: c.Name}
}

func (f *facts) anyMain(is func(*Container) bool) bool {
	for i := range f.pod.Spec.Containers {
		if is(f.of(&f.pod.Spec.Containers[i])) {
			return true
		}
	}
	return false
}

// phase returns the phase of the pod.
func (f *facts) phase(seen *Pod) corev1.PodPhase {
	if len(f.pod.Spec.Containers) == 0 {
		return seen.phase()
	}
	notSucceeded := f.anyMain(func(c *Container) bool { return !succeeded(c) })
	switch {
	case seen.Ended && (seen.Failed || notSucceeded):
		return corev1.PodFailed
	case seen.Ended:
		return corev1.PodSucceeded
	case f.over() && (f.initFailed() || notSucceeded):
		return corev1.PodFailed
	case f.over():
		return corev1.PodSucceeded
	case f.anyMain(func(c *Container) bool { return c.State == Waiting && !ran(c) }):
		return corev1.PodPending
	}
	return corev1.PodRunning
}

// phase returns the phase of a pod with an unknown spec. Its later containers are also unknown, so it has ended only if the backend reports
// that.
func (p *Pod) phase() corev1.PodPhase {
	is := func(what func(*Container) bool) bool {
		for i := range p.Containers {
			if what(&p.Containers[i]) {
				return true
			}
		}
		return false
	}
	switch {
	case p.Ended && (p.Failed || is(func(c *Container) bool { return !succeeded(c) })):
		return corev1.PodFailed
	case p.Ended:
		return corev1.PodSucceeded
	case is(func(c *Container) bool { return c.State != Waiting || ran(c) }):
		return corev1.PodRunning
	}
	return corev1.PodPending
}

// over reports whether the containers show that the pod has ended: none runs, and none starts again. Ephemeral
// containers, and containers that the pod lacks, do not count.
func (f *facts) over() bool {
	for _, list := range [][]corev1.Container{f.pod.Spec.InitContainers, f.pod.Spec.Containers} {
		for i := range list {
			if f.of(&list[i]).State == Running {
				return false
			}
		}
	}
	if f.initFailed() {
		return true
	}
	for i := range f.pod.Spec.Containers {
		if c := &f.pod.Spec.Containers[i]; !f.final(c) {
			return false
		}
	}
	return true
}

// initFailed reports whether an init container has failed for good. After an init container with an unknown end, the others may still run.
func (f *facts) initFailed() bool {
	for i := range f.pod.Spec.InitContainers {
		c := &f.pod.Spec.InitContainers[i]
		if f.final(c) && f.of(c).Run.ExitCode != nil && !succeeded(f.of(c)) {
			return true
		}
	}
	return false
}

// final reports whether a container has ended and does not start again. With an unknown exit code, it is final only if neither success nor
// failure restarts it.
func (f *facts) final(c *corev1.Container) bool {
	s := f.of(c)
	switch {
	case s.State != Exited:
		return false
	case s.Run.ExitCode != nil:
		return !RestartsAfter(f.pod, c, *s.Run.ExitCode)
	}
	return !RestartsAfter(f.pod, c, 0) && !RestartsAfter(f.pod, c, 1)
}

func succeeded(c *Container) bool {
	return c.State == Exited && c.Run.ExitCode != nil && *c.Run.ExitCode == 0
}

// started reports whether an ended container ever ran: a backend may report every container of an ended pod as
// ended.
func started(c *Container) bool { return c.Run.ExitCode != nil || !c.Run.StartedAt.IsZero() }

// ran reports whether a container has run before.
func ran(c *Container) bool { return c.Last != nil || c.Restarts > 0 }

func sidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// init returns the status of an init container. A container that the backend has forgotten is done if a main
// container has run, because main containers start after init containers.
func (f *facts) init(c *corev1.Container) corev1.ContainerStatus {
	s := f.container(c)
	if sidecar(c) {
		return s
	}
	if f.begun && f.seen[c.Name] == nil {
		s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: reasonCompleted, Message: "the backend does not report this container, and containers that start after it have run",
		}}
	}
	s.Ready = s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
	return s
}

func (f *facts) container(c *corev1.Container) corev1.ContainerStatus {
	seen := f.of(c)
	s := corev1.ContainerStatus{Name: c.Name, Image: cmp.Or(seen.Image, c.Image), ImageID: seen.ImageID, RestartCount: seen.Restarts}
	started := seen.State == Running && (seen.Started == nil || *seen.Started)
	s.Started = &started
	s.Ready = started && (seen.Ready == nil || *seen.Ready)
	if seen.Last != nil {
		s.ContainerID, s.LastTerminationState.Terminated = seen.Last.ID, seen.Last.terminated()
	}
	if seen.State != Waiting {
		s.ContainerID = seen.Run.ID
	}
	switch seen.State {
	case Running:
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.Time{Time: seen.Run.StartedAt}}
	case Exited:
		if s.State.Terminated = seen.Run.terminated(); s.State.Terminated == nil {
			s.State.Waiting = &corev1.ContainerStateWaiting{Reason: reasonUnknown, Message: "the backend does not tell how this container ended"}
		}
	default:
		reason := reasonCreating
		if len(f.pod.Spec.InitContainers) > 0 {
			reason = reasonInitializing
		}
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: cmp.Or(seen.Reason, reason), Message: seen.Message}
	}
	return s
}

// terminated returns the state of an ended run; nil if its exit code is unknown.
func (r *Run) terminated() *corev1.ContainerStateTerminated {
	if r.ExitCode == nil {
		return nil
	}
	reason := reasonCompleted
	if *r.ExitCode != 0 {
		reason = reasonError
	}
	return &corev1.ContainerStateTerminated{
		ExitCode: *r.ExitCode, Reason: cmp.Or(r.Reason, reason), Message: r.Message, ContainerID: r.ID,
		StartedAt: stamp(r.StartedAt), FinishedAt: stamp(r.FinishedAt),
	}
}

func stamp(t time.Time) metav1.Time { return metav1.Time{Time: t} }
