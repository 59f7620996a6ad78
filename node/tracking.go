// SPDX-License-Identifier: Apache-2.0

package node

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podTracker creates and drops the states of pods.
type podTracker struct {
	*podCore
	*quarantines
	inputs    *podInputs
	admission *podAdmission
}

// startTracking assigns the state to the pod, unless it already belongs to the pod. The secrets of an older pod are remembered until the
// backend no longer has that pod.
func (t *podTracker) startTracking(key string, api *corev1.Pod) {
	older, returned := t.states.beginState(key, api)
	if returned {
		t.orphans.showPod(key, time.Now())
	}
	if older == "" {
		return
	}
	t.secrets.End(older)
	t.releaseObjects(key, older)
}

// forgetName drops the state of a name that the API server does not have. If the backend keeps ended pods of the name, the state remains,
// because it records that they were asked to stop.
func (t *podTracker) forgetName(key string) {
	st := t.states.get(key)
	t.orphans.forgetPod(key)
	t.missing.releaseUnwanted(key, time.Now())
	t.forgetObjects(key, st.sent.UID)
	if st.sharesName() {
		return
	}
	t.states.dropState(key)
	t.given.forgetName(key)
	t.dropOlderSecrets(key, st.sent.UID)
}

// forgetObjects releases the ConfigMaps and Secrets of the pod, its other secrets, and its reserved resources.
func (t *podTracker) forgetObjects(key string, uid types.UID) {
	t.secrets.Drop(uid)
	t.releaseObjects(key, uid)
}

func (t *podTracker) releaseObjects(key string, uid types.UID) {
	t.admission.allocations.Release(uid)
	t.earlier.drop(uid)
	t.inputs.forgetObjects(key, uid)
}
