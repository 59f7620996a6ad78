// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Next decides what to do now for the pod. The status of pod is the last one that is known: of the API server, or that was
// reported to it.
func Next(pod *corev1.Pod, seen Observed, mem *Memory, now time.Time) Plan {
	return Plan{}
}

// Hash is the label that a container instance is created with: an instance with another one runs something
// else than the spec asks for.
func Hash(c *corev1.Container) string { return "" }
