// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// runningStatus returns the status of the running instance.
func (in *instance) runningStatus() corev1.PodStatus {
	s := in.pod.Status
	s.Phase, s.PodIP, s.ContainerStatuses = corev1.PodRunning, "10.0.0.1", nil
	for _, c := range in.pod.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, ContainerID: in.containerID(),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Time{Time: time.Now()}}},
		})
	}
	return s
}

// pendingStatus returns the status of a pod before it runs.
func pendingStatus(pod *corev1.Pod) corev1.PodStatus {
	s := *pod.Status.DeepCopy()
	s.Phase, s.ContainerStatuses = corev1.PodPending, nil
	for _, c := range pod.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
		})
	}
	return s
}

func isTerminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Ended returns a pod whose containers have all ended with the exit code.
func Ended(pod *corev1.Pod, exitCode int32) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Status.Phase = corev1.PodSucceeded
	if exitCode != 0 {
		pod.Status.Phase = corev1.PodFailed
	}
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		c.Ready = false
		c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode, ContainerID: c.ContainerID}}
	}
	return pod
}
