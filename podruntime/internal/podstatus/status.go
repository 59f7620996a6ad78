// SPDX-License-Identifier: Apache-2.0

// Package podstatus says what the status of a pod is, as a kubelet says it: a pure function of the pod, of what
// the runtime has and of what the pod's worker remembers.
//
// The guarantee: restart counts never fall, and the phase is terminal only when all containers have ended and
// plan.Finish is done.
//
// What surprises: the conditions Ready and PodScheduled are not here, nor observed generations. The pod controller
// derives them; it takes those that are here as they are.
package podstatus

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
)

// Status is the status of the pod. The status of pod is the last one that is known: of the API server, or that
// was reported to it.
func Status(pod *corev1.Pod, seen plan.Observed, mem *plan.Memory, now time.Time) corev1.PodStatus {
	f := facts{pod: pod, seen: seen, mem: mem, now: now, view: plan.Look(pod, seen, mem, now)}
	var s corev1.PodStatus
	if !mem.StartTime.IsZero() {
		s.StartTime = &metav1.Time{Time: mem.StartTime}
	}
	f.addresses(&s)
	for i := range pod.Spec.InitContainers {
		s.InitContainerStatuses = append(s.InitContainerStatuses, f.container(&pod.Spec.InitContainers[i], initKind))
	}
	for i := range pod.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, f.container(&pod.Spec.Containers[i], mainKind))
	}
	for i := range pod.Spec.EphemeralContainers {
		c := (*corev1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		s.EphemeralContainerStatuses = append(s.EphemeralContainerStatuses, f.container(c, ephemeralKind))
	}
	f.phase(&s)
	if mem.Finished() {
		f.endAll(&s)
	}
	f.conditions(&s)
	return s
}

// facts are what a status follows from.
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
