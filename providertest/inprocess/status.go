// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// show is a copy of the pod with its status. cloud.mu is held.
func (p *pod) show() *corev1.Pod {
	out := p.spec.DeepCopy()
	started := metav1.NewTime(p.created)
	s := corev1.PodStatus{Phase: p.phase(), StartTime: &started, PodIP: "127.0.0.1", PodIPs: []corev1.PodIP{{IP: "127.0.0.1"}}, HostIP: "127.0.0.1"}
	initialized := true
	ready := s.Phase == corev1.PodRunning
	for _, k := range p.containers {
		status := k.status()
		if k.init {
			s.InitContainerStatuses = append(s.InitContainerStatuses, status)
			initialized = initialized && (k.sidecar && k.started || status.State.Terminated != nil && status.State.Terminated.ExitCode == 0)
			ready = ready && (!k.sidecar || k.ready)
			continue
		}
		s.ContainerStatuses = append(s.ContainerStatuses, status)
		ready = ready && k.ready
	}
	for _, c := range []struct {
		kind corev1.PodConditionType
		ok   bool
	}{{corev1.PodScheduled, true}, {corev1.PodInitialized, initialized}, {corev1.ContainersReady, ready}, {corev1.PodReady, ready}} {
		is := corev1.ConditionFalse
		if c.ok {
			is = corev1.ConditionTrue
		}
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: c.kind, Status: is})
	}
	out.Status = s
	return out
}

// phase is that of the pod. cloud.mu is held.
func (p *pod) phase() corev1.PodPhase {
	begun := slices.ContainsFunc(p.containers, func(k *container) bool { return !k.init && k.run != nil })
	switch {
	case !p.over && begun:
		return corev1.PodRunning
	case !p.over:
		return corev1.PodPending
	}
	for _, k := range p.containers {
		if k.run == nil && !k.init || k.run != nil && !k.sidecar && k.run.code != 0 {
			return corev1.PodFailed
		}
	}
	return corev1.PodSucceeded
}

// status is that of the container. cloud.mu is held.
func (k *container) status() corev1.ContainerStatus {
	s := corev1.ContainerStatus{Name: k.spec.Name, Image: k.spec.Image, ImageID: k.spec.Image, RestartCount: k.restarts, Ready: k.ready}
	started := k.started && k.run != nil && !k.run.ended()
	s.Started = &started
	if k.last != nil {
		s.LastTerminationState.Terminated = k.last.terminated()
	}
	switch {
	case k.run == nil && k.pod.over:
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "PodInitializing"}
	case k.run == nil:
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	case k.waits:
		s.ContainerID = k.run.id
		s.LastTerminationState.Terminated = k.run.terminated()
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "it runs again after " + restartDelay.String()}
	case k.run.ended():
		s.ContainerID = k.run.id
		s.State.Terminated = k.run.terminated()
	default:
		s.ContainerID = k.run.id
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(k.run.started)}
	}
	return s
}

// terminated is how a run ended.
func (r *run) terminated() *corev1.ContainerStateTerminated {
	if !r.ended() {
		return nil
	}
	reason := "Completed"
	if r.code != 0 {
		reason = "Error"
	}
	return &corev1.ContainerStateTerminated{
		ExitCode: r.code, Reason: reason, Message: r.message, ContainerID: r.id,
		StartedAt: stamp(r.started), FinishedAt: stamp(r.finished),
	}
}

func stamp(t time.Time) metav1.Time { return metav1.NewTime(t) }
