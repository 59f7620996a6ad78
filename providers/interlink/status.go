// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// annotationIP is the annotation with the address of a pod in a network of the site.
const annotationIP = "interlink.eu/pod-ip"

// statusOf builds the status of a pod from the answer of a plugin. With probes, the plugin reports readiness.
// Without probes, answers have no field for readiness, and a running container is ready unless the answer
// reports whether it has started.
func statusOf(pod *corev1.Pod, said wire.PodStatus, probes bool) corev1.PodStatus {
	return podstatus.Status(pod, observed(pod, said, probes))
}

// tellsReady reports whether an answer contains a ready container, which proves that the plugin reports
// readiness. The API server writes `ready: false` where an answer has no such field, such as the answers of the
// Python SDK.
func tellsReady(said []wire.PodStatus) bool {
	return slices.ContainsFunc(said, func(s wire.PodStatus) bool {
		return slices.ContainsFunc(s.Containers, func(c corev1.ContainerStatus) bool { return c.Ready })
	})
}

// told reports whether an entry describes a job: it has the ID of a job, or the state of a container. For a pod
// without a job, interLink's Slurm plugin answers with containers without a state.
func told(s wire.PodStatus) bool {
	has := func(c corev1.ContainerStatus) bool { return c.State != corev1.ContainerState{} }
	return s.JobID != "" || slices.ContainsFunc(s.Containers, has) || slices.ContainsFunc(s.InitContainers, has)
}

// observed converts the answer of a plugin for package podstatus. A terminated container is never started again:
// jobs do not restart, and our plugin reports containers that will restart as waiting.
func observed(pod *corev1.Pod, said wire.PodStatus, probes bool) podstatus.Pod {
	seen := podstatus.Pod{}
	if ip := pod.Annotations[annotationIP]; ip != "" {
		seen.IPs = []string{ip}
	}
	if pod.Status.StartTime != nil {
		seen.StartedAt = pod.Status.StartTime.Time
	}
	for _, list := range [][]corev1.ContainerStatus{said.InitContainers, said.Containers} {
		for i := range list {
			seen.Containers = append(seen.Containers, container(&list[i], said.JobID, probes))
		}
	}
	seen.Ended = ended(pod, said)
	if seen.Ended {
		seen.Failed = slices.ContainsFunc(said.Containers, func(s corev1.ContainerStatus) bool { return s.State.Terminated == nil })
	}
	return seen
}

// ended reports whether nothing of a pod runs any more: its containers have ended, or an init container has
// failed.
func ended(pod *corev1.Pod, said wire.PodStatus) bool {
	of := &corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: said.InitContainers, ContainerStatuses: said.Containers}}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if s := service.StateOf(of, c.Name); !podspec.IsSidecar(c) && s != nil && s.State.Terminated != nil && s.State.Terminated.ExitCode != 0 {
			return true
		}
	}
	for i := range pod.Spec.Containers {
		if s := service.StateOf(of, pod.Spec.Containers[i].Name); s == nil || s.State.Terminated == nil {
			return false
		}
	}
	return true
}

// container converts a container status for package podstatus.
func container(s *corev1.ContainerStatus, job string, probes bool) podstatus.Container {
	c := podstatus.Container{Name: s.Name, Restarts: s.RestartCount, Image: s.Image, ImageID: s.ImageID}
	if t := s.LastTerminationState.Terminated; t != nil {
		last := end(t)
		c.Last = &last
	}
	switch {
	case s.State.Terminated != nil:
		c.State, c.Run = podstatus.Exited, end(s.State.Terminated)
		if c.Run.ID == "" {
			c.Run.ID = s.ContainerID
		}
	case s.State.Running != nil:
		c.State, c.Run = podstatus.Running, podstatus.Run{ID: s.ContainerID, StartedAt: s.State.Running.StartedAt.Time}
		if c.Started = s.Started; probes || s.Started != nil {
			c.Ready = &s.Ready
		}
	case s.State.Waiting != nil:
		c.Reason, c.Message = s.State.Waiting.Reason, s.State.Waiting.Message
	}
	if c.State == podstatus.Waiting && c.Message == "" && job != "" {
		c.Message = "job " + job
	}
	return c
}

func end(t *corev1.ContainerStateTerminated) podstatus.Run {
	r := podstatus.Run{
		ID: t.ContainerID, StartedAt: t.StartedAt.Time, FinishedAt: t.FinishedAt.Time, Reason: t.Reason, Message: t.Message,
	}
	if t.Reason != wire.ReasonLost {
		r.ExitCode = &t.ExitCode
	}
	return r
}
