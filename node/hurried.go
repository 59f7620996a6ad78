// SPDX-License-Identifier: Apache-2.0

package node

import "time"

const (
	// hurriedPoll is the poll interval of a provider that does not report, while a pod starts or stops.
	hurriedPoll = time.Second
	// hurriedFor is how long hurriedPoll applies after a request to start or stop the pod. It is longer than the
	// default grace period. It is bounded, because one pod that never starts must not raise the polling of all.
	hurriedFor = 40 * time.Second
	// aloneEvery is the number of poll periods between two status calls for a single pod that has been Pending
	// for longer.
	aloneEvery = 3
)

// hurriedKeys returns the keys of the pods that the backend was asked to start or stop a short while ago.
func (s *podStates) hurriedKeys(now time.Time) (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, st := range s.m {
		if st.sent.Accepted && !st.stopped && st.isHurried(now) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (st *podState) isHurried(now time.Time) bool { return now.Sub(st.askedAt) < hurriedFor }
