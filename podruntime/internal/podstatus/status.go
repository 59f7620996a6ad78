// SPDX-License-Identifier: Apache-2.0

// Package podstatus says what the status of a pod is, as a kubelet says it: a pure function of the pod, of what the
// runtime has and of what the pod's worker remembers.
//
// The guarantee: restart counts never fall, and the phase is terminal only when all containers have ended and plan.Finish
// is done.
//
// What surprises: conditions that the pod controller derives from container statuses are not
// here, unless a kubelet says them with other words.
package podstatus

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/plan"
)

// Status is the status of the pod. The status of pod is the last one that is known: of the API server, or that was
// reported to it.
func Status(pod *corev1.Pod, seen plan.Observed, mem *plan.Memory, now time.Time) corev1.PodStatus {
	return corev1.PodStatus{}
}
