// SPDX-License-Identifier: Apache-2.0

package lifecycle

import corev1 "k8s.io/api/core/v1"

const (
	// tokenLife is the default lifetime of a token in seconds, as in the API server. mostTokenLife is the longest lifetime.
	tokenLife, mostTokenLife = 3600, 1 << 32
	// startWithin is the number of seconds that may pass between the creation of the token and the start of the pod. The active deadline
	// counts from that start.
	startWithin = 600
)

// LastingToken returns the source of a token that lives as long as a pod with activeDeadlineSeconds can run. It is for providers that
// cannot replace the token in the containers. For other pods, and for a source with a longer lifetime, it returns source itself.
func LastingToken(pod *corev1.Pod, source *corev1.ServiceAccountTokenProjection) *corev1.ServiceAccountTokenProjection {
	deadline := pod.Spec.ActiveDeadlineSeconds
	if deadline == nil {
		return source
	}
	life := min(*deadline, mostTokenLife) + startWithin
	if grace := pod.Spec.TerminationGracePeriodSeconds; grace != nil {
		life += min(*grace, mostTokenLife)
	}
	asked := int64(tokenLife)
	if source.ExpirationSeconds != nil {
		asked = *source.ExpirationSeconds
	}
	if life = min(life, mostTokenLife); life <= asked {
		return source
	}
	out := source.DeepCopy()
	out.ExpirationSeconds = &life
	return out
}
