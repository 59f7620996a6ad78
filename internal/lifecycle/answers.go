// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EndsWhenRejected reports whether a pod fails when the provider rejects it. A pod that is never restarted
// fails. A pod of a Job fails too, because the Job counts its failures. Any other pod waits: its controller
// might create a new pod for each failed pod, without end.
func EndsWhenRejected(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	ofJob := owner != nil && owner.Kind == "Job" && strings.HasPrefix(owner.APIVersion, "batch/")
	return ofJob || pod.Spec.RestartPolicy == corev1.RestartPolicyNever
}
