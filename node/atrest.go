// SPDX-License-Identifier: Apache-2.0

package node

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// basis is all that a look at a pod at rest depends on. On the same basis there is
// nothing to write again, so a resync of thousands of pods at rest costs next to nothing.
type basis struct {
	version    string // of the API server's pod, which has no other of this UID and version
	report     *report
	syncErr    *lifecycle.SyncError
	failure    *lifecycle.PodFailure
	stopped    bool
	stopAsked  bool
	attempted  bool
	generation int64
	reflected  int64
	sized      *sizes
	acceptedAt time.Time // when the backend was handed other metadata
}

// basisOf returns the basis of a look at the pod, or zero when it is not at rest: one that
// is being deleted is looked at anew, and so is one with conditions to be dropped.
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

// atRest reports whether there was nothing to write on what is known of the pod now.
func (st *podState) atRest(api *corev1.Pod) bool {
	return st.synced != (basis{}) && st.synced == basisOf(api, st)
}

// noteBasis notes that there was nothing to write on this basis.
func (c *PodController) noteBasis(key string, on basis) {
	if on != (basis{}) {
		c.states.status(key, anyPod, func(s statusWriter) { s.synced = on })
	}
}
