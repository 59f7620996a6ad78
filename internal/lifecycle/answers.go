// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// EndsWhenRejected reports whether a pod that the provider rejects has failed: one that is never restarted, and one of a Job,
// which counts its failures. Another may be of a controller that makes a new one for each that fails, without end; it waits.
func EndsWhenRejected(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	ofJob := owner != nil && owner.Kind == "Job" && strings.HasPrefix(owner.APIVersion, "batch/")
	return ofJob || pod.Spec.RestartPolicy == corev1.RestartPolicyNever
}

// FoundInList returns the pod of a name among all that the backend has, the wanted one if that is among them, nil if it has none. It decides when
// GetPod returned an error without a kind, as many providers do for a pod that they do not have. An empty list may be no answer
// either, and leaves the absence doubtful. shared says that the wanted one is not the only one of the name.
func FoundInList(pods []*corev1.Pod, namespace, name string, wanted types.UID) (pod *corev1.Pod, doubtful, shared bool) {
	for _, p := range pods {
		if p.Namespace != namespace || p.Name != name {
			continue
		}
		own := wanted != "" && p.UID == wanted
		shared = shared || wanted != "" && p.UID != "" && !own
		if pod == nil || own && pod.UID != wanted {
			pod = p
		}
	}
	return pod, len(pods) == 0, shared
}
