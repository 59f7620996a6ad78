// SPDX-License-Identifier: Apache-2.0

package node

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// podState is what the controller remembers of the pod of one namespace/name.
// Everything in it can be derived again from the API server and the backend.
// Values of it are copies; what its pointers point to is never changed.
type podState struct {
	// written by the sync lane, which works on one key at a time
	sent     lifecycle.Sent
	previous types.UID // an older pod of this name that the backend may still have
	handed   metadata  // of the pod that the backend was given last
	trouble  *lifecycle.Trouble
	verdict  *lifecycle.Verdict
	stopped  bool // the backend confirmed the stop of sent.UID
	orphan   orphan

	// written by events and the survey: reasons to ask the backend
	suspect   bool      // the backend's list lacks the pod
	witnessed types.UID // the pod that a delete event was seen for

	// written by reports
	report  *report
	dropped []corev1.PodConditionType // conditions that the provider no longer reports

	// written by the status lane
	written *corev1.Pod // the API server's last answer, while the cache is behind it
	own     ownedKeys
	// lastWord says that the terminal status of the stopped pod was written, and
	// lastReport on which report: the object can go.
	lastWord   bool
	lastReport *report
	removedAt  time.Time // when the API server accepted the removal
	budget     writeBudget
}

// metadata are the two maps of a pod that a provider may change.
type metadata struct{ labels, annotations map[string]string }

func metadataOf(pod *corev1.Pod) metadata { return metadata{pod.Labels, pod.Annotations} }

// ownedKeys are the keys that the provider itself added to a pod.
type ownedKeys struct{ labels, annotations map[string]bool }

// report is the provider's newest word on one pod.
type report struct {
	uid    types.UID // "": the backend keeps none
	status *corev1.PodStatus
	metadata
}

// about reports whether the report speaks about the pod.
func (r *report) about(uid types.UID) bool { return r != nil && (r.uid == "" || r.uid == uid) }

// podStates holds the states by namespace/name.
type podStates struct {
	mu sync.Mutex
	m  map[string]*podState // guarded by mu
}

// get returns a copy of the state, the zero state when there is none.
func (s *podStates) get(key string) podState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.m[key]; st != nil {
		return *st
	}
	return podState{}
}

// update changes the state, which is made if there is none.
func (s *podStates) update(key string, change func(*podState)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.m[key]
	if st == nil {
		st = &podState{}
		s.m[key] = st
	}
	change(st)
}

// drop forgets the state, and returns it.
func (s *podStates) drop(key string) podState {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.m[key]
	delete(s.m, key)
	if st == nil {
		return podState{}
	}
	return *st
}

// begin makes the state that of the pod with the UID. What was known of an
// older pod of the same name is kept only as far as the backend may still have it.
func (s *podStates) begin(key string, uid types.UID) {
	s.update(key, func(st *podState) {
		if st.sent.UID == uid {
			return
		}
		fresh := podState{sent: lifecycle.Sent{UID: uid}, previous: st.previous, orphan: st.orphan, witnessed: st.witnessed}
		if st.sent.Attempted && !st.stopped {
			fresh.previous = st.sent.UID
		}
		if st.report.about(uid) && st.report.uid != "" {
			fresh.report = st.report
		}
		*st = fresh
	})
}

// accepted returns the keys and UIDs of the pods that the backend accepted.
func (s *podStates) accepted() map[string]types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make(map[string]types.UID, len(s.m))
	for key, st := range s.m {
		if st.sent.Accepted && !st.stopped {
			keys[key] = st.sent.UID
		}
	}
	return keys
}

// size returns the number of states.
func (s *podStates) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.m)
}

const (
	writeBurst = 5
	writeEvery = time.Second
)

// writeBudget keeps a pod whose status flaps to one write a second, after a
// burst of five.
type writeBudget struct {
	spent int
	since time.Time // when spent was last reduced
}

// take returns 0 and takes a write from the budget, or returns how long there
// is none.
func (b *writeBudget) take(now time.Time) time.Duration {
	back := int(now.Sub(b.since) / writeEvery)
	if b.spent -= back; b.spent <= 0 {
		b.spent, b.since = 0, now
	} else {
		b.since = b.since.Add(time.Duration(back) * writeEvery)
	}
	if b.spent >= writeBurst {
		return b.since.Add(writeEvery).Sub(now)
	}
	b.spent++
	return 0
}
