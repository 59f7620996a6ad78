// SPDX-License-Identifier: Apache-2.0

// Package podstatus makes the status of a pod as a kubelet does. It is a pure function of the pod, of the runtime's state and of the memory of the
// pod's worker.
//
// The guarantee: restart counts never fall, and the phase is terminal only when all containers have ended and plan.Finish is done.
//
// Note: this package does not set the conditions Ready and PodScheduled, or observed generations. The pod controller derives them, and keeps
// the conditions of this package unchanged.
package podstatus

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
)

// Status returns the status of the pod. The status in pod is the last known one: from the API server, or the
// last report to it.
func Status(pod *corev1.Pod, seen plan.Observed, mem *plan.Memory, now time.Time) corev1.PodStatus {
	f := facts{pod: pod, seen: seen, mem: mem, now: now, view: plan.Look(pod, seen, mem, now)}
	var s corev1.PodStatus
	if !mem.StartTime.IsZero() {
		s.StartTime = &metav1.Time{Time: mem.StartTime}
	}
	f.setAddresses(&s)
	for i := range pod.Spec.InitContainers {
		s.InitContainerStatuses = append(s.InitContainerStatuses, f.containerStatus(&pod.Spec.InitContainers[i], initKind))
	}
	for i := range pod.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, f.containerStatus(&pod.Spec.Containers[i], mainKind))
	}
	for i := range pod.Spec.EphemeralContainers {
		c := (*corev1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		s.EphemeralContainerStatuses = append(s.EphemeralContainerStatuses, f.containerStatus(c, ephemeralKind))
	}
	f.setPhase(&s)
	if mem.Finished() {
		f.endAll(&s)
	}
	f.setConditions(&s)
	return s
}

// facts are the inputs of a status.
type facts struct {
	pod  *corev1.Pod
	seen plan.Observed
	mem  *plan.Memory
	now  time.Time
	view *plan.View
}

type kind int

const (
	mainKind kind = iota
	initKind
	ephemeralKind
)
