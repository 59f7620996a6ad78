// SPDX-License-Identifier: Apache-2.0

package node

import "time"

const (
	// hurriedPoll is the poll interval of a provider that does not report, while a pod starts or stops.
	hurriedPoll = time.Second
	// hurriedFor is how long hurriedPoll applies after a request to start or stop the pod. It is longer than the default grace period. It
	// is bounded, because one pod that never starts must not increase the polling of all pods.
	hurriedFor = 40 * time.Second
	// aloneEvery is the number of poll periods between two status calls for a single pod that has been Pending
	// for longer.
	aloneEvery = 3
)

// isHurried reports whether the backend was recently asked to start or stop the pod.
func (st *podState) isHurried() bool { return st.isAccepted() && time.Since(st.askedAt) < hurriedFor }
