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

func (st *podState) byReport() reportWriter { return reportWriter{&st.reported, &st.exchanged, st} }
func (st *podState) byStatus() statusWriter { return statusWriter{&st.statusMemory, &st.exchanged, st} }

// anyPod matches every pod UID of a state.
const anyPod types.UID = "any"

// change changes the state, if there is one: a late response must not recreate a dropped state. The state must still belong to the pod,
// because a report may have started the state of the next pod during a call.
func (s *podStates) change(key string, uid types.UID, change func(*podState)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.m[key]; st != nil && (uid == anyPod || st.sent.UID == uid) {
		change(st)
	}
}

// changeOrBegin changes the state, and creates it if there is none. The caller must add the key to the sync lane, which eventually drops
// the state.
func (s *podStates) changeOrBegin(key string, change func(*podState)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.m[key]
	if st == nil {
		st = &podState{}
		s.m[key] = st
	}
	change(st)
}

// beginState assigns the state to the pod api, and returns the UID of an older pod of the same name. Facts about the older pod are kept
// only while the backend may still have it. returned reports whether api seemed to be an orphan.
//
// A newer pod of the name proves that the older one was deleted. A pod that was created before it proves
// nothing: a backup may have brought it back.
func (s *podStates) beginState(key string, api *corev1.Pod) (older types.UID, returned bool) {
	uid, created := api.UID, api.CreationTimestamp.Time
	s.changeOrBegin(key, func(st *podState) {
		returned = st.takeFromOthers(uid)
		if st.sent.UID == uid {
			st.created = created
			return
		}
		older = st.sent.UID
		fresh := podState{
			syncMemory:   syncMemory{sent: lifecycle.Sent{UID: uid}, created: created},
			statusMemory: statusMemory{endLogged: lifecycle.Terminal(&api.Status)},
			others:       st.othersWithOlder(created),
		}
		if st.report.matches(uid) {
			fresh.report = st.report
		}
		*st = fresh
	})
	return older, returned
}

// takeFromOthers removes the pod with the UID, which the API server has, from the other pods of the name. It
// reports whether the pod seemed to be an orphan.
func (st *podState) takeFromOthers(uid types.UID) (orphan bool) {
	i := slices.IndexFunc(st.others, func(o lifecycle.Other) bool { return o.UID == uid })
	if i < 0 || st.stopped && st.sent.UID == uid { // the backend may keep the pod after its stop
		return false
	}
	orphan = !st.others[i].Since.IsZero()
	st.others = slices.Delete(slices.Clone(st.others), i, i+1)
	return orphan
}

// othersWithOlder returns the other pods of the name when a pod created at the time created replaces the pod of the state.
func (st *podState) othersWithOlder(created time.Time) []lifecycle.Other {
	if st.sent.UID == "" || st.stopped {
		return st.others
	}
	return lifecycle.ChangeOther(st.others, st.sent.UID, func(o *lifecycle.Other) {
		o.Deleted = o.Deleted || !created.Before(st.created)
		if st.sent.StopAcked && o.Asked.IsZero() {
			o.Asked = st.sent.StopAskedAt // the pod is already stopping: the stop is not requested again
		}
	})
}

// sync changes the sync lane's memory of the pod with the UID, or of any pod with anyPod. The next resync then checks whether the status
// must be written.
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

// recordDeletion records that the deletion of the pod was observed.
func (s *podStates) recordDeletion(key string, uid types.UID) {
	s.changeOrBegin(key, func(st *podState) {
		st.others = lifecycle.ChangeOther(st.others, uid, func(o *lifecycle.Other) { o.Deleted = true })
	})
}

// changeOther changes the record of a pod of another UID, and adds it if there is none.
func (s *podStates) changeOther(key string, uid types.UID, change func(*lifecycle.Other)) {
	s.change(key, anyPod, func(st *podState) { st.others = lifecycle.ChangeOther(st.others, uid, change) })
}

// recordShown records that a list contained the pod. asked is the time of the request for the list.
func (s *podStates) recordShown(key string, uid types.UID, asked time.Time) {
	s.change(key, uid, func(st *podState) { st.sent.Shown, st.shownAt = true, laterOf(st.shownAt, asked) })
}

// recordAnswer records that the backend was asked for the pod by its name. none means that it has no pod of the name.
func (s *podStates) recordAnswer(key string, none bool) {
	s.changeOrBegin(key, func(st *podState) {
		st.suspect = false
		if none {
			st.others = nil
		}
	})
}

// showOthers records the pods that the backend has shown under the name, except the wanted pod.
func (s *podStates) showOthers(key string, wanted types.UID, pods []*corev1.Pod) {
	if len(pods) == 0 {
		return
	}
	s.changeOrBegin(key, func(st *podState) {
		for _, pod := range pods {
			if pod.UID != wanted {
				st.others = lifecycle.ShowOther(st.others, pod, &st.sent, time.Now())
			}
		}
	})
}

// dropUnlisted forgets the other pods of the name that are not among the pods of a list. asked is the time of
// the request for the list.
func (s *podStates) dropUnlisted(key string, pods []*corev1.Pod, asked time.Time) {
	s.change(key, anyPod, func(st *podState) { st.others = lifecycle.DropUnlisted(st.others, pods, asked) })
}

// hideUnlisted records which other pods of the name are not among the pods of a list that may have gaps, and
// reports whether there are such pods.
func (s *podStates) hideUnlisted(key string, pods []*corev1.Pod, asked time.Time) (news bool) {
	s.change(key, anyPod, func(st *podState) {
		before := st.others
		st.others = lifecycle.HideUnlisted(before, pods, asked)
		news = !slices.Equal(before, st.others)
	})
	return news
}

// reports changes the record of the provider's reports.
func (s *podStates) reports(key string, uid types.UID, change func(reportWriter)) {
	s.change(key, uid, func(st *podState) { change(st.byReport()) })
}

// status changes the memory of the status lane.
func (s *podStates) status(key string, uid types.UID, change func(statusWriter)) {
	s.change(key, uid, func(st *podState) { change(st.byStatus()) })
}

// noneDropped records that the API server no longer has the conditions that the provider dropped up to the report upTo.
func (s *podStates) noneDropped(key string, upTo *report) {
	s.reports(key, anyPod, func(w reportWriter) {
		if w.report == upTo {
			w.dropped = nil
		}
	})
}

// recordReflected records that a report about the pod describes generation, and reports whether this changes the
// published generation.
func (s *podStates) recordReflected(key string, uid types.UID, generation int64) (news bool) {
	s.change(key, uid, func(st *podState) { news = st.recordReflected(generation, st.generation) })
	return news
}
