// SPDX-License-Identifier: Apache-2.0

package node

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// syncWriter is what the sync lane may change of a state. all is to be read.
type syncWriter struct {
	*syncMemory
	*errorMemory
	*exchanged
	all *podState
}

// reportWriter is what reports may change of a state. all is to be read.
type reportWriter struct {
	*reported
	*exchanged
	all *podState
}

// statusWriter is what the status lane may change of a state. all is to be read.
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
	m.left = append(slices.DeleteFunc(slices.Clone(m.left), func(u types.UID) bool { return u == uid }), uid)
}

func (st *podState) byReport() reportWriter { return reportWriter{&st.reported, &st.exchanged, st} }
func (st *podState) byStatus() statusWriter { return statusWriter{&st.statusMemory, &st.exchanged, st} }

// anyPod stands for the UID of whichever pod the state is about.
const anyPod types.UID = "any"

// change changes the state, if there is one: what comes back late from a
// provider or the API server must not bring back what was forgotten. It must still be that of the pod: a report may
// have begun the next pod's while a call for this one was under way.
func (s *podStates) change(key string, uid types.UID, change func(*podState)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.m[key]; st != nil && (uid == anyPod || st.sent.UID == uid) {
		change(st)
	}
}

// anew changes the state, which is made if there is none. It is for those who
// see to it that the sync lane looks at the key, and forgets it in the end.
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

// begin makes the state that of the pod with the UID. What was known of an
// older pod of the same name, which is returned, is kept only as far as the
// backend may still have it.
//
// A newer pod of the name proves that the older one was deleted. One that was created before it
// proves nothing: a backup may have brought it back.
func (s *podStates) begin(key string, api *corev1.Pod) (older types.UID) {
	uid, created := api.UID, api.CreationTimestamp.Time
	s.anew(key, func(st *podState) {
		if st.sent.UID == uid {
			st.created = created
			return
		}
		older = st.sent.UID
		fresh := podState{
			syncMemory: syncMemory{sent: lifecycle.Sent{UID: uid}, created: created, previous: st.previous, orphan: st.orphan, left: st.left},
			evidence:   evidence{shared: st.shared || len(st.left) > 0, witnessed: st.witnessed},
		}
		if st.sent.Attempted && !st.stopped {
			fresh.previous = st.sent.UID
		}
		if st.sent.StopAcked && !st.stopped && !(st.orphan.Present && st.orphan.UID == st.sent.UID) {
			fresh.orphan = lifecycle.NewOrphan(st.sent.UID, &st.sent, st.sent.StopAskedAt) // it is stopping: it is not asked to again
		}
		if st.report.matches(uid) && st.report.uid != "" {
			fresh.report = st.report
		}
		if older != "" && !created.Before(st.created) {
			fresh.witnessed = older
		}
		*st = fresh
	})
	return older
}

// sync changes what the sync lane remembers of the pod with the UID, or of whichever there is.
func (s *podStates) sync(key string, uid types.UID, change func(syncWriter)) {
	s.change(key, uid, func(st *podState) { change(st.bySync()) })
}

// errors changes what is remembered of failures.
func (s *podStates) errors(key string, uid types.UID, change func(*errorMemory)) {
	s.change(key, uid, func(st *podState) { change(&st.errorMemory) })
}

// evidence changes what speaks for asking the backend.
func (s *podStates) evidence(key string, uid types.UID, change func(*evidence)) {
	s.change(key, uid, func(st *podState) { change(&st.evidence) })
}

// witness notes that the deletion of the pod was seen.
func (s *podStates) witness(key string, uid types.UID) {
	s.anew(key, func(st *podState) { st.witnessed = uid })
}

// shown notes that a list which was asked for then had the pod.
func (s *podStates) shown(key string, uid types.UID, asked time.Time) {
	s.change(key, uid, func(st *podState) { st.sent.Shown, st.shownAt = true, later(st.shownAt, asked) })
}

// asked notes that the backend was asked for the pod by its name, and returns the older pod of the name, if it turns out that the
// backend has none.
func (s *podStates) asked(key string, none bool) (gone types.UID) {
	s.anew(key, func(st *podState) {
		st.suspect = false
		if none {
			gone = st.previous
			st.previous, st.left = "", nil
		}
	})
	return gone
}

// share notes that the backend has another pod under the name of the one with the UID.
func (s *podStates) share(key string, uid types.UID) {
	s.evidence(key, uid, func(e *evidence) { e.shared = true })
}

// reports changes what the provider has told.
func (s *podStates) reports(key string, uid types.UID, change func(reportWriter)) {
	s.change(key, uid, func(st *podState) { change(st.byReport()) })
}

// status changes what the status lane remembers.
func (s *podStates) status(key string, uid types.UID, change func(statusWriter)) {
	s.change(key, uid, func(st *podState) { change(st.byStatus()) })
}

// noneDropped notes that the API server has none of the conditions that the provider dropped up to the report.
func (s *podStates) noneDropped(key string, upTo *report) {
	s.reports(key, anyPod, func(w reportWriter) {
		if w.report == upTo {
			w.dropped = nil
		}
	})
}

// reflects notes that what was told of the pod is about the generation, and reports whether that makes a difference to what is
// published.
func (s *podStates) reflects(key string, uid types.UID, generation int64) (news bool) {
	s.change(key, uid, func(st *podState) { news = st.reflects(generation, st.sent.Generation) })
	return news
}
