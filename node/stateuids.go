// SPDX-License-Identifier: Apache-2.0

package node

import "k8s.io/apimachinery/pkg/types"

// uids returns the UIDs of the pods that have a state, by their keys.
func (s *podStates) uids() map[string]types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uidsLocked()
}

func (s *podStates) uidsLocked() map[string]types.UID {
	all := make(map[string]types.UID, len(s.m))
	for key, st := range s.m {
		all[key] = st.sent.UID
	}
	return all
}

// forgetAll drops all states and returns the UIDs of their pods. A state may be outdated when another process
// has worked on the pod.
func (s *podStates) forgetAll() map[string]types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	forgotten := s.uidsLocked()
	s.m = map[string]*podState{}
	return forgotten
}
