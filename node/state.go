// SPDX-License-Identifier: Apache-2.0

package node

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// podState is the controller's state of the pod of one namespace/name. Everything in it can be derived again from the API server and the
// backend. Values of podState are copies; the values behind its pointers are never changed.
//
// Each part has one owner, which changes it through one of the functions sync, errors, evidence, reports and status.
type podState struct {
	syncMemory
	errorMemory
	evidence
	reported
	statusMemory
	exchanged
	others []lifecycle.Other // pods of other UIDs under the name; written by lookups, lists and events
	// turn is the deadline for the pod's stop in a drain; zero: no drain stops the pod. A drain writes it.
	turn time.Time
}

// syncMemory is the state of the sync lane, which works on one key at a time.
type syncMemory struct {
	sent     lifecycle.Sent // Shown is also written by the relist
	created  time.Time      // creation time of sent.UID in the API server
	failure  *lifecycle.PodFailure
	deadline deadline
	admitted bool              // the node has admitted it
	sized    *sizes            // the resources with which its containers were created; nil: unknown, or the backend can resize them
	stopped  bool              // the backend confirmed the stop of sent.UID
	over     bool              // the pod has ended in the API server, and the backend does not run it
	copied   string            // the version of the backend's copy when it was found; "": not found
	echo     *corev1.PodStatus // the status that the backend received with the last update
	askedAt  time.Time         // when the backend was last asked to create, update or stop the pod, except for repeated stops
}

// errorMemory has the failures of the sync lane. The sync lane writes it, even while its calls hang.
type errorMemory struct {
	syncErr *lifecycle.SyncError
	notices notices // notices about the failures
	unready bool    // the pod waits for a ConfigMap or Secret
	refused uint64  // the version of the spec that the backend refused, with the metadata in handed; 0: no refusal
}

// evidence has the reasons to ask the backend. Events and the relist write it; the sync lane clears the handled reasons.
type evidence struct {
	suspect  bool      // the backend must be asked for the pod by name, even if there seems to be no work
	lackedAt time.Time // request time of the newest complete list without the pod, while the pod is missing
	shownAt  time.Time // request time of the newest list with the pod, while the pod is missing
	doubled  bool      // the newest list has two instances of the pod
	held     bool      // an event has reported that the node does not act on the missing pod
}

// reported has the provider's reports. Only reports write it.
type reported struct {
	report     *report
	relapsed   bool                      // the pod was reported as running after its reported end
	reportedAt time.Time                 // when the pod was reported while it was missing
	dropped    []corev1.PodConditionType // conditions that the provider no longer reports
}

// statusMemory is the state of the status lane.
type statusMemory struct {
	written   *corev1.Pod // the last response of the API server, while the cache is older
	writtenAt time.Time
	own       metadata // the provider's additions, as they were written
	// finalStatus reports whether the terminal status of the stopped pod was written, or refused for good; the object can then be removed.
	// lastReport is the report for that status.
	finalStatus bool
	lastReport  *report
	removedAt   time.Time // when the API server accepted the removal
	endLogged   bool      // the end of the pod was logged, or was before this process started
	denied      notice    // the notice about writes that the API server refused
	// unkept is the newest observedGeneration that the API server did not store, because its feature gate may be off.
	unkept int64
	// labelsRefused is the change of labels that the API server has refused. labelsRefusedAt is the time of the
	// refusal.
	labelsRefused   map[string]*string
	labelsRefusedAt time.Time
	budget          writeBudget
	// restsAt is the resource version of the pod for which there was nothing to write; "": a write may be due.
	restsAt string
}

// exchanged is the data that the sync lane has sent to the backend, and the status lane to the API server.
type exchanged struct {
	handed handed
	// generation is the generation of the pod that the backend received last.
	generation int64
	// reflected is the newest generation that the reports about the pod are known to describe. It never decreases.
	reflected int64
}

// deadline is the active deadline of a pod, computed once.
type deadline struct {
	by time.Time // on the wall clock, from the pod
	at time.Time // on the monotonic clock of the process
}

// report is the provider's newest report about one pod.
type report struct {
	uid     types.UID
	version string // resource version of the provider's copy; "": unknown
	// generation is the generation of the pod that the status describes; 0: the provider does not report it.
	generation int64
	status     *corev1.PodStatus
	metadata
	// polled means that this is a result of GetPodStatus, which contains no metadata. after is the last report before the call.
	polled bool
	after  *report
	// listed means that this is from a list of a provider that reports. The list may be old, and the next list may correct it.
	listed bool
}

// matches reports whether the report is about the pod.
func (r *report) matches(uid types.UID) bool { return r != nil && r.uid == uid }

// isOwnWord reports whether this is a report about the pod, or an answer to a call, and not from a list.
func (r *report) isOwnWord(uid types.UID) bool { return r.matches(uid) && !r.listed }

// beingAsked reports whether the status of an adopted or changed pod is still being requested from the backend. Until then, a list may be
// older than the status in the API server from before a restart. For a pod without a generation this is unknown.
func (st *podState) beingAsked() bool { return st.reflected < st.generation }

// recordReflected records that the backend's report describes generation. accepted is the generation that the backend accepted. news
// reports whether this changes the published generation.
func (st *exchanged) recordReflected(generation, accepted int64) (news bool) {
	before := min(st.reflected, accepted)
	st.reflected = max(st.reflected, generation)
	return min(st.reflected, accepted) > before
}

// clearError removes the failures, because the pod is in its desired state.
func (st *errorMemory) clearError() {
	st.syncErr, st.notices, st.unready, st.refused = nil, nil, false, 0
}

// believeAnswer is the time for which the response to a write takes precedence over the cache. If the watch has not shown the change by
// then, a restored backup may have undone it.
const believeAnswer = time.Minute

// newestOf returns the last response of the API server if the cache is still older, because a comparison with the cache would then undo or
// repeat the last write.
func (st *podState) newestOf(cached *corev1.Pod, now time.Time) *corev1.Pod {
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

// get returns a copy of the state, or the zero state if there is none.
func (s *podStates) get(key string) podState {
	st, _ := s.findState(key)
	return st
}

// findState returns a copy of the state like get, and reports whether there is a state.
func (s *podStates) findState(key string) (podState, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.m[key]; st != nil {
		return *st, true
	}
	return podState{}, false
}

// dropState removes the state, and returns it.
func (s *podStates) dropState(key string) podState {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.m[key]
	delete(s.m, key)
	if st == nil {
		return podState{}
	}
	return *st
}

// isOver reports whether no work is left for the pod, because it has ended.
func (st *podState) isOver(api *corev1.Pod) bool { return lifecycle.IsOver(api, &st.sent, st.over) }

// reportedAs returns the state of the pod according to the provider's reports.
func (st *podState) reportedAs(uid types.UID) lifecycle.Reported {
	switch {
	case st.isFinished(uid) && st.relapsed:
		return lifecycle.ReportedAgain
	case st.isFinished(uid):
		return lifecycle.ReportedEnded
	case st.report.matches(uid) && !st.report.polled:
		return lifecycle.ReportedAlive
	}
	return lifecycle.NotReported
}

// sharesName reports whether the backend has shown another pod under the name, so that its answers by name may be
// about that pod.
func (st *podState) sharesName() bool {
	return slices.ContainsFunc(st.others, func(o lifecycle.Other) bool { return o.Pod != nil })
}

// unknownSince returns when the backend first did not return the pod by its name, or zero.
func (st *podState) unknownSince() time.Time {
	if st.sent.StopMissing {
		return st.sent.StopAskedAt
	}
	return st.sent.MissingSince
}

// hasReappeared reports whether the backend has shown the pod in another way since unknownSince, and no newer list
// lacks it.
func (st *podState) hasReappeared() bool { return st.newerThanLack(laterOf(st.shownAt, st.reportedAt)) }

// relistedAgain reports whether a list has contained the pod since unknownSince: the backend has the pod, although it does not return it by
// name. If a pod is only reported and in no answer, the answers are incomplete.
func (st *podState) relistedAgain() bool { return st.newerThanLack(st.shownAt) }

func (st *podState) newerThanLack(at time.Time) bool {
	since := st.unknownSince()
	return !since.IsZero() && !at.Before(since) && !at.Before(st.lackedAt)
}

// laterOf returns the later of two times.
func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// isFinished reports whether the provider reported the pod as Succeeded or Failed.
func (st *podState) isFinished(uid types.UID) bool {
	return st.report.matches(uid) && lifecycle.Terminal(st.report.status)
}

// othersSince returns the time since which the backend shows another pod under the name, or zero. Ended pods that it merely keeps do not
// count.
func (st *podState) othersSince() (since time.Time) {
	for _, o := range st.others {
		if o.Pod == nil || o.HasLeft() {
			continue
		}
		if since.IsZero() || o.Since.Before(since) {
			since = o.Since
		}
	}
	return since
}

// keepsEnded reports whether a pod that the backend lists, and the API server does not have, ended after a stop request.
func (st *podState) keepsEnded(pod *corev1.Pod) bool {
	if !lifecycle.Terminal(&pod.Status) {
		return false
	}
	return slices.ContainsFunc(st.others, func(o lifecycle.Other) bool { return o.UID == pod.UID && !o.Asked.IsZero() })
}

// isTerminated reports whether the API server knows that the pod has ended. If the pod is deleted, the API server
// must also have been asked to remove it.
func (s *podStates) isTerminated(key string, api *corev1.Pod) bool {
	st := s.get(key)
	if st.sent.UID != api.UID {
		st = podState{} // the sync lane does not track this pod yet
	}
	ended := lifecycle.Terminal(&st.newestOf(api, time.Now()).Status)
	if api.DeletionTimestamp == nil {
		return ended
	}
	return !st.removedAt.IsZero() || ended && len(api.Finalizers) > 0
}

// isAccepted reports whether the backend has accepted the pod, and has not confirmed its stop.
func (st *podState) isAccepted() bool { return st.sent.Accepted && !st.stopped }

// hadSeveral reports whether the backend had another pod of the name, or a second instance of the pod.
func (st *podState) hadSeveral() bool { return len(st.others) > 0 || st.doubled }

// keysOf returns the keys of the states for which is returns true.
func (s *podStates) keysOf(is func(*podState) bool) (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, st := range s.m {
		if is(st) {
			keys = append(keys, key)
		}
	}
	return keys
}

// roomHolders returns the pods that have a state, and whether each of them needs its reserved resources. A pod needs them until its end is
// reported or its stop is confirmed.
func (s *podStates) roomHolders() map[types.UID]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	uids := make(map[types.UID]bool, len(s.m))
	for _, st := range s.m {
		uids[st.sent.UID] = !st.stopped && (st.relapsed || !st.isFinished(st.sent.UID))
	}
	return uids
}

// size returns the number of states.
func (s *podStates) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.m)
}

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

// forgetAll drops all states and returns the UIDs of their pods. A state may be outdated if another process has worked on the pod.
func (s *podStates) forgetAll() map[string]types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	forgotten := s.uidsLocked()
	s.m = map[string]*podState{}
	return forgotten
}
