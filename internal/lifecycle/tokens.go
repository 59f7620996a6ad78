// SPDX-License-Identifier: Apache-2.0

package lifecycle

import corev1 "k8s.io/api/core/v1"

const (
	// tokenLife is the life of a token in seconds where a volume says nothing, as the API server sets it, and mostTokenLife the longest.
	tokenLife, mostTokenLife = 3600, 1 << 32
	// startWithin is how many seconds a pod may take from its token to its start, from which its deadline counts.
	startWithin = 600
)

// LastingToken returns the source of a token that lives as long as a pod with activeDeadlineSeconds can run, for those who cannot replace it in the containers.
// It is the source itself for other pods, and where that lives longer.
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
