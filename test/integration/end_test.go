// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestPodEndsBeforeItsContainer: a pod may end while the state of its container is not known yet. The API server
// accepts this status, and later the exit code.
func TestPodEndsBeforeItsContainer(t *testing.T) {
	t.Parallel()
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure, corev1.RestartPolicyAlways} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start()
			pod := w.pod("job")
			pod.Spec.RestartPolicy = policy
			w.startPod(pod)
			w.backend.Change(w.key("job"), func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded })
			w.awaitPod("job", "has succeeded, and nobody knows how its container ended", func(pod *corev1.Pod) bool {
				end := pod.Status.ContainerStatuses[0].State.Waiting
				return pod.Status.Phase == corev1.PodSucceeded && end != nil && end.Reason == "ContainerStatusUnknown"
			})
			w.backend.Change(w.key("job"), func(pod *corev1.Pod) { *pod = *memory.Ended(pod, 0) })
			w.awaitPod("job", "has its exit code", func(pod *corev1.Pod) bool {
				return pod.Status.Phase == corev1.PodSucceeded && pod.Status.ContainerStatuses[0].State.Terminated != nil
			})
		})
	}
}
