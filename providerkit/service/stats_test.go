// SPDX-License-Identifier: Apache-2.0

package service

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node/api/statsv1alpha1"
)

// TestPodStats checks that the stats of a pod have its running containers, and the sums of all that was measured.
func TestPodStats(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"}, Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{Name: "sidecar", State: running}, {Name: "done"}}, ContainerStatuses: []corev1.ContainerStatus{
		{Name: "a", State: running}, {Name: "b", State: running}, {Name: "unmeasured", State: running}, {Name: "waits"},
	}}}
	at := metav1.NewTime(time.Unix(1000, 0))
	s := PodStats(pod, func(c *statsv1alpha1.ContainerStats) {
		if c.Name != "unmeasured" {
			c.CPU = &statsv1alpha1.CPUStats{Time: at, UsageNanoCores: new(uint64(5))}
			c.Memory = &statsv1alpha1.MemoryStats{Time: at, UsageBytes: new(uint64(7))}
		}
	})
	if len(s.Containers) != 4 || s.PodRef.Namespace != "ns" || s.PodRef.UID != "u" || !s.CPU.Time.Equal(&at) || *s.CPU.UsageNanoCores != 15 || *s.Memory.WorkingSetBytes != 21 {
		t.Errorf("got %+v", s)
	}
	if s := PodStats(pod, func(*statsv1alpha1.ContainerStats) {}); s.CPU != nil || s.Memory != nil {
		t.Errorf("without a measurement: got %+v, %+v", s.CPU, s.Memory)
	}
}

// TestLackingProbes checks that a service makes no probe beside a startup probe that would have to wait for it.
func TestLackingProbes(t *testing.T) {
	own, other := &corev1.Probe{}, &corev1.Probe{}
	isOwn := func(p *corev1.Probe) bool { return p == own }
	if got := LackingProbes(&corev1.Container{LivenessProbe: own, ReadinessProbe: other}, isOwn); got != (Probes{Readiness: other}) || got.Has(own) || !got.Has(other) || got.Has(nil) {
		t.Errorf("got %+v", got)
	}
	startup := &corev1.Probe{}
	if got := LackingProbes(&corev1.Container{StartupProbe: startup, LivenessProbe: own, ReadinessProbe: own}, isOwn); got != (Probes{Startup: startup, Liveness: own}) {
		t.Errorf("beside a startup probe: got %+v", got)
	}
}
