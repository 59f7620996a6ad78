// SPDX-License-Identifier: Apache-2.0

package node

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podTracker begins and ends what is remembered of pods.
type podTracker struct {
	*podCore
	*quarantines
	inputs    *podInputs
	admission *podAdmission
}

// startTracking begins the state of the pod, if it is not that of the pod already. What must not be said
// about an older one is known until the backend does not have it any more.
func (t *podTracker) startTracking(key string, api *corev1.Pod) {
	older := t.states.begin(key, api)
	if older == "" {
		return
	}
	t.secrets.End(older)
	if t.states.get(key).previous != older {
		t.secrets.Drop(older)
	}
	t.releaseObjects(key, older)
}

// forget lets go of a pod that is gone on both sides.
func (t *podTracker) forget(key string) {
	st := t.states.drop(key)
	t.orphans.forget(key)
	t.missing.leave(key, time.Now())
	t.secrets.Drop(st.previous)
	t.forgetObjects(key, st.sent.UID)
}

// forgetObjects lets go of the ConfigMaps and Secrets that the pod names, of what it was given, and of its place.
func (t *podTracker) forgetObjects(key string, uid types.UID) {
	t.secrets.Drop(uid)
	t.releaseObjects(key, uid)
}

func (t *podTracker) releaseObjects(key string, uid types.UID) {
	t.admission.allocations.Release(uid)
	t.earlier.drop(uid)
	t.inputs.forget(key, uid)
}
