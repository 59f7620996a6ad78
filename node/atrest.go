// SPDX-License-Identifier: Apache-2.0

package node

import (
	corev1 "k8s.io/api/core/v1"
)

// basisOf returns the basis of a look at the pod, or zero when the pod is not at rest. A pod always gets a new
// look while it is being deleted or has conditions to drop.
func basisOf(api *corev1.Pod, st *podState) basis {
	if api.ResourceVersion == "" || api.DeletionTimestamp != nil || len(st.dropped) > 0 {
		return basis{}
	}
	return basis{
		version: api.ResourceVersion, report: st.report, syncErr: st.syncErr, failure: st.failure,
		stopped: st.stopped, stopAsked: !st.sent.StopAskedAt.IsZero(), attempted: st.sent.Attempted,
		generation: st.sent.Generation, reflected: st.reflected, sized: st.sized, acceptedAt: st.sent.AcceptedAt,
	}
}

// atRest reports whether the current knowledge about the pod requires no write.
func (st *podState) atRest(api *corev1.Pod) bool {
	return st.synced != (basis{}) && st.synced == basisOf(api, st)
}

// atRest reports whether the current knowledge about the pod requires no write.
func (s *podStates) atRest(key string, api *corev1.Pod) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.m[key]
	return st != nil && st.atRest(api)
}
