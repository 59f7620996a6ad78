// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stub is what a request about a pod that the server has says of it: who it is and what its containers are called. Its environment,
// which has secrets, is not sent again.
func stub(pod *corev1.Pod) *corev1.Pod {
	s := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}}
	names := func(list []corev1.Container) (out []corev1.Container) {
		for i := range list {
			out = append(out, corev1.Container{Name: list[i].Name, Image: list[i].Image})
		}
		return out
	}
	s.Spec = corev1.PodSpec{Containers: names(pod.Spec.Containers), InitContainers: names(pod.Spec.InitContainers), RestartPolicy: pod.Spec.RestartPolicy}
	s.Status.Phase = corev1.PodRunning // of a pod in another phase the server says what it remembers, without asking the plugin
	return s
}

// deletion is what a request to stop a pod says of it.
func deletion(pod *corev1.Pod) *corev1.Pod {
	s := stub(pod)
	s.ObjectMeta = metadata(pod)
	s.DeletionTimestamp, s.DeletionGracePeriodSeconds = pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds
	s.Spec.TerminationGracePeriodSeconds = pod.Spec.TerminationGracePeriodSeconds
	return s
}
