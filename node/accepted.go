// SPDX-License-Identifier: Apache-2.0

package node

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// recordAccepted records that the backend has the version of the pod in api.
func (w *podWorker) recordAccepted(key string, api *corev1.Pod) {
	first := false
	w.states.sync(key, api.UID, func(st syncWriter) {
		first = !st.sent.Accepted
		st.sent.Attempted, st.sent.Accepted, st.sent.Recreate = true, true, false
		st.sent.AcceptedAt, st.sent.MissingSince = time.Now(), time.Time{}
		st.sent.Updating = false
		st.generation, st.sent.SpecVersion = api.Generation, lifecycle.SpecVersion(api)
		st.askedAt = st.sent.AcceptedAt
		st.clearError()
	})
	w.given.recordAccepted(key, api.UID)
	w.dropOlderSecrets(key, api.UID)
	if first {
		w.orphans.oneMore()
		w.missing.oneMore()
	}
	w.statusLane.Add(key)
	if !w.backend.notifies {
		w.pollLane.Add(key)
		w.pollSoon()
	}
}

// requestStatus requests the status of a pod that was found at the backend, if the provider has not reported it, because it may have done
// so before a restart. It also requests the status of a changed pod if the last report may be older than the change.
func (w *podWorker) requestStatus(key string) {
	if st := w.states.get(key); !st.report.matches(st.sent.UID) || st.reflected < st.generation {
		w.pollLane.Add(key)
	}
}
