// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// EndsWhenRejected reports whether a pod fails when the provider rejects it. A pod that is never restarted
// fails. A pod of a Job fails too, because the Job counts its failures. Any other pod waits: its controller
// might create a new pod for each failed pod, without end.
func EndsWhenRejected(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	ofJob := owner != nil && owner.Kind == "Job" && strings.HasPrefix(owner.APIVersion, "batch/")
	return ofJob || pod.Spec.RestartPolicy == corev1.RestartPolicyNever
}

// FoundInList returns the pod with this name from a list of all pods of the backend. It prefers the wanted pod,
// and returns nil if no pod has the name. The list decides when GetPod returned an error without a kind, which
// many providers do for a pod that they do not have. An empty list may be a failed answer, too, so the absence
// is then doubtful. shared reports whether another pod than the wanted one has the name.
func FoundInList(pods []*corev1.Pod, namespace, name string, wanted types.UID) (pod *corev1.Pod, doubtful, shared bool) {
	for _, p := range pods {
		if p.Namespace != namespace || p.Name != name {
			continue
		}
		own := wanted != "" && p.UID == wanted
		shared = shared || wanted != "" && !own
		if pod == nil || own && pod.UID != wanted {
			pod = p
		}
	}
	return pod, len(pods) == 0, shared
}
