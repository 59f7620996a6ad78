// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podstatus"
)

// withStatus returns a copy of the pod with its status. The caller holds cloud.mu.
func (p *pod) withStatus() *corev1.Pod {
	seen := podstatus.Pod{StartedAt: p.created, IPs: []string{"127.0.0.1"}, HostIPs: []string{"127.0.0.1"}, Ended: p.over}
	for _, k := range p.containers {
		seen.Containers = append(seen.Containers, k.observedState())
	}
	out := p.spec.DeepCopy()
	out.Status = podstatus.Status(p.spec, seen)
	// A caller that sees the end of a pod may reuse its name: the last container has ended a moment before the
	// pod is over.
	if ended := out.Status.Phase == corev1.PodSucceeded || out.Status.Phase == corev1.PodFailed; ended && !p.over {
		out.Status.Phase = corev1.PodRunning
	}
	return out
}

// observedState returns the observed state of the container. The caller holds cloud.mu.
func (k *container) observedState() podstatus.Container {
	s := podstatus.Container{
		Name: k.spec.Name, Image: k.spec.Image, ImageID: k.spec.Image, Restarts: k.restarts, Started: &k.started, Ready: &k.ready,
	}
	if k.last != nil {
		last := k.last.observedState()
		s.Last = &last
	}
	switch {
	case k.run == nil:
	case k.waits:
		last := k.run.observedState()
		s.Last = &last
		s.Reason, s.Message = "CrashLoopBackOff", "it runs again after "+restartDelay.String()
	case k.run.hasEnded():
		s.State, s.Run = podstatus.Exited, k.run.observedState()
	default:
		s.State, s.Run = podstatus.Running, k.run.observedState()
	}
	return s
}

// observedState returns the observed state of a run.
func (r *run) observedState() podstatus.Run {
	s := podstatus.Run{ID: r.id, StartedAt: r.started}
	if r.hasEnded() {
		code := r.code
		s.ExitCode, s.FinishedAt, s.Reason, s.Message = &code, r.finished, r.reason, r.message
	}
	return s
}
