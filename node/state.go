// SPDX-License-Identifier: Apache-2.0

package node

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// podState is what the controller remembers of the pod of one namespace/name.
// Everything in it can be derived again from the API server and the backend.
// Values of it are copies; what its pointers point to is never changed.
//
// Each part is changed by one owner, whose writer is the argument of the function that changes it: sync, errors, evidence, reports, status.
type podState struct {
	syncMemory
	errorMemory
	evidence
	reported
	statusMemory
	exchanged
	// turn is until when the pod may take to stop; zero: it is not its turn. A drain writes it.
	turn time.Time
}

// syncMemory is what the sync lane remembers, which works on one key at a time.
type syncMemory struct {
	sent     lifecycle.Sent // Shown is written by the relist, too
	created  time.Time      // of sent.UID, by the API server
	previous types.UID      // an older pod of this name that the backend may still have
	failure  *lifecycle.PodFailure
	deadline deadline
	admitted bool   // there was room for it
	sized    *sizes // what its containers were made with; nil: nobody knows, or the backend can change it
	stopped  bool   // the backend confirmed the stop of sent.UID
	over     bool   // the pod has ended in the API server, and the backend does not run it
	orphan   lifecycle.Orphan
	copied   string            // the version of the backend's copy when it was found; "": not found
	echo     *corev1.PodStatus // what the backend was given as the status with the last update
	askedAt  time.Time         // when the backend was last asked to have the pod, or for a stop that it was not asked for before
	left     []types.UID       // the pods whose DeletePod was acknowledged and that the backend may keep, the newest last; never written to
}

// errorMemory is what failed in the sync lane. Its calls write it, also while they hang.
type errorMemory struct {
	syncErr *lifecycle.SyncError
	notices notices // of what failed
	unready bool    // it waits for a ConfigMap or Secret
	refused uint64  // the version of the spec that the backend did not take with what is in handed; 0: nothing waits for a change of the pod
}

// evidence is what speaks for asking the backend. Events and the relist write it; the sync lane ends what it has dealt with.
type evidence struct {
	suspect   bool        // it must be asked for by name, even if there seems to be nothing to do
	witnessed types.UID   // the pod that a delete event was seen for
	lackedAt  time.Time   // when the newest complete list without the pod was asked for, while it is missing
	shownAt   time.Time   // when the newest list that had the pod was asked for, while it is missing
	shared    bool        // the backend has another pod under the name: what it says by name may be about that
	beside    *corev1.Pod // of another UID, which the newest list has under the name, and which has not ended
	doubled   bool        // the newest list has two instances of the pod
}

// reported is what the provider has told. Reports write it.
type reported struct {
	report     *report
	relapsed   bool                      // after its end was reported, the pod was reported as running
	reportedAt time.Time                 // when it was reported while it was missing
	dropped    []corev1.PodConditionType // conditions that the provider no longer reports
}

// statusMemory is what the status lane remembers.
type statusMemory struct {
	written   *corev1.Pod // the API server's last answer, while the cache is behind it
	writtenAt time.Time
	own       metadata // what the provider added, as it was written
	// finalStatus says that the terminal status of the stopped pod was written, or
	// refused for good, and lastReport on which report: the object can go.
	finalStatus bool
	lastReport  *report
	removedAt   time.Time // when the API server accepted the removal
	denied      notice    // of writes that the API server refused
	// unkept is the newest generation that the API server did not keep as observed: its feature gate may be off.
	unkept int64
	// labelsRefused is the change of labels that the API server has refused, and labelsRefusedAt when.
	labelsRefused   map[string]*string
	labelsRefusedAt time.Time
	budget          writeBudget
	synced          basis // what nothing was to be written on; zero: something may be
}

// exchanged is what both lanes have passed on: the sync lane to the backend, the status lane to the API server.
type exchanged struct {
	handed handed
	// reflected is the newest generation that what was told of the pod is known to be about. It only grows.
	reflected int64
}

// deadline is the end of a pod's active time, worked out once.
type deadline struct {
	by time.Time // on the wall clock, as the pod says
	at time.Time // by the process's own clock, which is never set
}

// report is the provider's newest word on one pod.
type report struct {
	uid     types.UID // "": the backend keeps none
	version string    // of the pod that the provider has a copy of; "": it does not tell
	// generation is that of the pod that the status is about; 0: the provider does not tell.
	generation int64
	status     *corev1.PodStatus
	metadata
	// polled says that it is an answer of GetPodStatus, which knows of no
	// metadata, and after which report the question was asked.
	polled bool
	after  *report
	// listed says that it is from a list of a provider that reports, which may be old: the next list may put it right.
	listed bool
}

// matches reports whether the report speaks about the pod.
func (r *report) matches(uid types.UID) bool { return r != nil && (r.uid == "" || r.uid == uid) }

// tells reports whether the provider itself has told this of the pod, now or when it was asked.
func (r *report) tells(uid types.UID) bool { return r.matches(uid) && !r.listed }

// beingAsked reports whether the answer is awaited how the backend's pod is, which was found or changed: a list may be
// older than what the API server was told before a restart. Of a pod without a generation that is not known.
func (st *podState) beingAsked() bool { return st.reflected < st.sent.Generation }

// reflects notes that what the backend has told is about the generation, of which it accepted one, and reports whether that makes a difference to
// what is published.
func (st *exchanged) reflects(generation, accepted int64) (news bool) {
	before := min(st.reflected, accepted)
	st.reflected = max(st.reflected, generation)
	return min(st.reflected, accepted) > before
}

// clearError forgets what failed: the pod is in step with the backend.
func (st *errorMemory) clearError() {
	st.syncErr, st.notices, st.unready, st.refused = nil, nil, false, 0
}

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

// believeAnswer is how long the answer to a write counts for more than the cache: what is
// not in the watch by then may have been taken back, by a backup that was restored.
const believeAnswer = time.Minute

// newer returns the API server's last answer if the cache is still behind it:
// a comparison with the cache would then take back or repeat what was written.
func (st *podState) newer(cached *corev1.Pod, now time.Time) *corev1.Pod {
	written := st.written
	if written == nil || written.UID != cached.UID || now.Sub(st.writtenAt) >= believeAnswer {
		return cached
	}
	if order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, written.ResourceVersion); err == nil && order < 0 {
		return written
	}
	return cached
}

// podStates holds the states by namespace/name.
type podStates struct {
	mu sync.Mutex
	m  map[string]*podState // guarded by mu
}

// get returns a copy of the state, the zero state when there is none.
func (s *podStates) get(key string) podState {
	st, _ := s.find(key)
	return st
}

// find is get, and reports whether there is a state.
func (s *podStates) find(key string) (podState, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.m[key]; st != nil {
		return *st, true
	}
	return podState{}, false
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

// isOver reports whether nothing is left to do for the pod, as it has ended.
func (st *podState) isOver(api *corev1.Pod) bool { return lifecycle.IsOver(api, &st.sent, st.over) }

// runs reports whether the provider reported the pod last as not ended, of its own accord.
func (st *podState) runs(uid types.UID) bool {
	return st.report != nil && st.report.uid == uid && !st.report.polled && !lifecycle.Terminal(st.report.status)
}

// others returns what is known of other pods under the name.
func (st *podState) others() lifecycle.Others {
	return lifecycle.Others{
		Previous: st.previous, Left: st.left, Shared: st.shared, Witnessed: st.witnessed,
		Orphan: st.orphan, Beside: st.beside,
	}
}

// unknownSince is when the backend first did not know the pod by its name, zero if it does.
func (st *podState) unknownSince() time.Time {
	if st.sent.StopMissing {
		return st.sent.StopAskedAt
	}
	return st.sent.MissingSince
}

// reappeared reports whether the backend has shown the pod in another way since then, and no newer list lacks it.
func (st *podState) reappeared() bool { return st.newerThanLack(later(st.shownAt, st.reportedAt)) }

// relistedAgain is reappeared by a list: the backend knows the pod, if not by its name. One that
// is reported and in no answer speaks for answers that have gaps.
func (st *podState) relistedAgain() bool { return st.newerThanLack(st.shownAt) }

func (st *podState) newerThanLack(at time.Time) bool {
	since := st.unknownSince()
	return !since.IsZero() && !at.Before(since) && !at.Before(st.lackedAt)
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// finished reports whether the provider reported the pod as Succeeded or Failed.
func (st *podState) finished(uid types.UID) bool {
	return st.report.matches(uid) && lifecycle.Terminal(st.report.status)
}

// keeps reports whether a pod that the backend lists, and the API server does not have, is one that has left.
func (st *podState) keeps(backend *corev1.Pod) bool {
	return lifecycle.HasLeft(lifecycle.Named(backend, &st.sent, st.previous, false), &st.sent, st.left, &st.orphan)
}

// terminated reports whether the API server knows that the pod has ended, and, if
// it is deleted, has been asked to remove it.
func (s *podStates) terminated(key string, api *corev1.Pod) bool {
	st := s.get(key)
	if st.sent.UID != api.UID {
		st = podState{} // the sync lane does not track this pod yet
	}
	ended := lifecycle.Terminal(&st.newer(api, time.Now()).Status)
	if api.DeletionTimestamp == nil {
		return ended
	}
	return !st.removedAt.IsZero() || ended && len(api.Finalizers) > 0
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

// holding returns whether the pods of which something is remembered need the room that they have reserved: neither is their end
// reported, nor their stop confirmed.
func (s *podStates) holding() map[types.UID]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	uids := make(map[types.UID]bool, len(s.m))
	for _, st := range s.m {
		uids[st.sent.UID] = !st.stopped && (st.relapsed || !st.finished(st.sent.UID))
	}
	return uids
}

// leftovers returns the keys under which the backend keeps a pod that has left.
func (s *podStates) leftovers() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := map[string]bool{}
	for key, st := range s.m {
		if len(st.left) > 0 {
			keys[key] = true
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
