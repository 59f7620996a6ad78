// SPDX-License-Identifier: Apache-2.0

package node

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// syncWriter contains the parts of a state that the sync lane may change. all is for reading only.
type syncWriter struct {
	*syncMemory
	*errorMemory
	*exchanged
	all *podState
}

// reportWriter contains the parts of a state that reports may change. all is for reading only.
type reportWriter struct {
	*reported
	*exchanged
	all *podState
}

// statusWriter contains the parts of a state that the status lane may change. all is for reading only.
type statusWriter struct {
	*statusMemory
	*exchanged
	all *podState
}

func (st *podState) bySync() syncWriter {
	return syncWriter{&st.syncMemory, &st.errorMemory, &st.exchanged, st}
}

// keep notes that the backend may keep a pod that has left or is leaving, as the newest of them.
func (m *syncMemory) keep(uid types.UID) {
	m.unkeep(uid)
	m.left = append(m.left, uid)
}

// unkeep notes that the backend does not have the pod any more.
func (m *syncMemory) unkeep(uid types.UID) {
	m.left = slices.DeleteFunc(slices.Clone(m.left), func(u types.UID) bool { return u == uid })
}

func (st *podState) byReport() reportWriter { return reportWriter{&st.reported, &st.exchanged, st} }
func (st *podState) byStatus() statusWriter { return statusWriter{&st.statusMemory, &st.exchanged, st} }

// anyPod stands for the UID of any pod that the state is about.
const anyPod types.UID = "any"

// change changes the state, if there is one: a late answer of a provider or of the API server must not bring a
// dropped state back. The state must still belong to the pod: a report may have begun the state of the next pod
// during a call for this pod.
func (s *podStates) change(key string, uid types.UID, change func(*podState)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.m[key]; st != nil && (uid == anyPod || st.sent.UID == uid) {
		change(st)
	}
}

// anew changes the state, and creates it if there is none. The caller must make the sync lane look at the key,
// so that it drops the state in the end.
func (s *podStates) anew(key string, change func(*podState)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.m[key]
	if st == nil {
		st = &podState{}
		s.m[key] = st
	}
	change(st)
}

// begin makes the state belong to the pod with the UID, and returns an older pod of the same name. Facts about
// the older pod are kept only as far as the backend may still have that pod.
//
// A newer pod of the name proves that the older one was deleted. A pod that was created before it proves
// nothing: a backup may have brought it back.
func (s *podStates) begin(key string, api *corev1.Pod) (older types.UID) {
	uid, created := api.UID, api.CreationTimestamp.Time
	s.anew(key, func(st *podState) {
		if st.sent.UID == uid {
			st.created = created
			return
		}
		older = st.sent.UID
		fresh := podState{
			syncMemory:   syncMemory{sent: lifecycle.Sent{UID: uid}, created: created, orphan: st.orphan, left: st.left},
			evidence:     evidence{shared: st.shared || len(st.left) > 0, witnessed: st.witnessed},
			statusMemory: statusMemory{endLogged: lifecycle.Terminal(&api.Status)},
		}
		if st.sent.StopAcked && !st.stopped && !(st.orphan.Present && st.orphan.UID == st.sent.UID) {
			fresh.orphan = lifecycle.NewOrphan(st.sent.UID, &st.sent, st.sent.StopAskedAt) // it is stopping: the stop is not requested again
		}
		if st.report.matches(uid) {
			fresh.report = st.report
		}
		if older != "" && !created.Before(st.created) {
			fresh.witnessed = older
		}
		*st = fresh
	})
	return older
}

// sync changes the sync lane's memory of the pod with the UID, or of any pod with anyPod. The next resync then
// looks whether the status must be written.
func (s *podStates) sync(key string, uid types.UID, change func(syncWriter)) {
	s.change(key, uid, func(st *podState) {
		change(st.bySync())
		st.restsAt = ""
	})
}

// errors changes the record of failures.
func (s *podStates) errors(key string, uid types.UID, change func(*errorMemory)) {
	s.sync(key, uid, func(st syncWriter) { change(st.errorMemory) })
}

// evidence changes the reasons to ask the backend.
func (s *podStates) evidence(key string, uid types.UID, change func(*evidence)) {
	s.change(key, uid, func(st *podState) { change(&st.evidence) })
}

// witness records that the deletion of the pod was seen.
func (s *podStates) witness(key string, uid types.UID) {
	s.anew(key, func(st *podState) { st.witnessed = uid })
}

// shown records that a list contained the pod. asked is the time of the request for the list.
func (s *podStates) shown(key string, uid types.UID, asked time.Time) {
	s.change(key, uid, func(st *podState) { st.sent.Shown, st.shownAt = true, later(st.shownAt, asked) })
}

// asked records that the backend was asked for the pod by its name. none reports whether it has no pod of the
// name.
func (s *podStates) asked(key string, none bool) {
	s.anew(key, func(st *podState) {
		st.suspect = false
		if none {
			st.left = nil
		}
	})
}

// share records that the backend has another pod under the name of the pod with the UID.
func (s *podStates) share(key string, uid types.UID) {
	s.evidence(key, uid, func(e *evidence) { e.shared = true })
}

// reports changes the record of the provider's reports.
func (s *podStates) reports(key string, uid types.UID, change func(reportWriter)) {
	s.change(key, uid, func(st *podState) { change(st.byReport()) })
}

// status changes the memory of the status lane.
func (s *podStates) status(key string, uid types.UID, change func(statusWriter)) {
	s.change(key, uid, func(st *podState) { change(st.byStatus()) })
}

// noneDropped records that the API server has none of the conditions that the provider dropped up to the report
// upTo.
func (s *podStates) noneDropped(key string, upTo *report) {
	s.reports(key, anyPod, func(w reportWriter) {
		if w.report == upTo {
			w.dropped = nil
		}
	})
}

// reflects records that a report about the pod describes generation, and reports whether this changes the
// published generation.
func (s *podStates) reflects(key string, uid types.UID, generation int64) (news bool) {
	s.change(key, uid, func(st *podState) { news = st.reflects(generation, st.sent.Generation) })
	return news
}
