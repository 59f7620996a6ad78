// SPDX-License-Identifier: Apache-2.0

package podsecrets

import (
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

const (
	// defaultLife is the default lifetime of a token in seconds, as in the API server.
	defaultLife = 3600
	// longestUse bounds the use of a token with a longer lifetime.
	longestUse = 24 * time.Hour
	// jitter is the maximum advance of a renewal, so that the tokens of many pods are not renewed together.
	jitter = 10 * time.Second
	// refreshPause is the pause after a failed renewal of a valid token. Callers get the old token in the meantime.
	refreshPause = 10 * time.Second
)

// tokenKey identifies a token of a pod.
type tokenKey struct {
	audience string // "": the audience of the API server
	life     int64
}

func keyFor(source *corev1.ServiceAccountTokenProjection) tokenKey {
	life := int64(defaultLife)
	if source.ExpirationSeconds != nil {
		life = *source.ExpirationSeconds
	}
	return tokenKey{audience: source.Audience, life: life}
}

// projectsToken reports whether a volume of the pod requests such a token, or a token whose lifetime is shorter than the pod's maximum duration.
func projectsToken(pod *corev1.Pod, key tokenKey) bool {
	for i := range pod.Spec.Volumes {
		projected := pod.Spec.Volumes[i].Projected
		if projected == nil {
			continue
		}
		for j := range projected.Sources {
			if source := projected.Sources[j].ServiceAccountToken; source != nil && (keyFor(source) == key || keyFor(lifecycle.LastingToken(pod, source)) == key) {
				return true
			}
		}
	}
	return false
}

// accountName returns the service account of a pod.
func accountName(pod *corev1.Pod) string {
	if pod.Spec.ServiceAccountName == "" {
		return "default"
	}
	return pod.Spec.ServiceAccountName
}

// tokenRequest returns the request for the API server.
func tokenRequest(pod *corev1.Pod, key tokenKey) *authenticationv1.TokenRequest {
	r := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &key.life,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	if key.audience != "" {
		r.Spec.Audiences = []string{key.audience}
	}
	return r
}

// useFor returns the time for which a token with this lifetime is used: 80 % of it, at most a day, minus a random part of jitter. less is between 0
// and 1.
func useFor(life time.Duration, less float64) time.Duration {
	return max(0, min(life*8/10, longestUse)-time.Duration(less*float64(jitter)))
}

// timePassed returns the time since then by the clock that shows more: the monotonic clock stops while a machine sleeps, and the wall clock can be
// set back.
func timePassed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}
