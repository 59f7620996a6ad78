// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Facts is the input of Next: everything that is known about the pod of one namespace and name. If a decision needs another fact, Next
// returns a step that asks for it, at most once, and the answer is added to the facts.
type Facts struct {
	Now time.Time
	Wanted
	Done
	Answers
	Others []Other // the pods of other UIDs that the backend has or had under the name
	Doubt
	Taken Steps // the steps of this pass so far
}

// Wanted is the desired state: the pod in the API server, and the node's decisions about it.
type Wanted struct {
	API     *corev1.Pod // nil: gone, or not a pod of this node
	Failure *PodFailure // the node decided that the pod has failed: it must stop
	// Outdated reports whether the pod was changed since the backend accepted it.
	Outdated bool
	Live     *corev1.Pod // the API server's pod under the name, read without a cache; nil: none
}

// Done is the record of the node's own actions.
type Done struct {
	Sent    Sent // about the UID of API, or about the last one if API is nil
	Stopped bool // the backend has confirmed the stop of Sent.UID
	Over    bool // the pod has ended in the API server, and the backend confirmed that it does not run
}

// Answers are the statements of the backend in reports and in responses to calls.
type Answers struct {
	Reports  bool // the provider reports the states of its pods
	Retell   bool // the backend keeps no specs: after a restart it receives the specs again
	Reported Reported

	// Own is the backend's copy of the wanted pod, or nil.
	Own *corev1.Pod
	// Named is a pod of another UID that the backend returned for the name. It is nil if the backend returned the wanted pod, or none.
	Named *corev1.Pod
	// Silent reports whether the backend gave no answer. Silence proves neither presence nor absence.
	Silent bool
}

// Reported is the state of the wanted pod according to the provider's reports.
type Reported int

const (
	// NotReported means that no report of the provider shows whether the pod runs.
	NotReported Reported = iota
	// ReportedAlive means that the last report does not show the pod as ended.
	ReportedAlive
	// ReportedEnded means that the pod has Succeeded or Failed.
	ReportedEnded
	// ReportedAgain means that the pod was reported as running after its end.
	ReportedAgain
)

// Doubt describes how certain the knowledge about the backend and about the API server is.
type Doubt struct {
	Suspect bool // the backend must be asked in any case
	// Doubtful reports whether the last answer may omit the wanted pod although the backend has it.
	Doubtful bool
	Complete bool // the backend declared, before the request, that its answers are complete
	Unlisted bool // the backend has never listed its pods, so no list can confirm its answers by name
	Listed   bool // the backend has nevertheless shown the missing pod: in its newest list, or in a report
	// LackedAt is the time of the request for the newest complete list that confirms that the pod is missing. It
	// is zero if no list does.
	LackedAt time.Time
	// Held is the time until the absence of the wanted pod may count as evidence; it is more than 0, for example, while the backend lacks
	// many pods. OrphanHeld is the same for other pods of the name that the API server lacks.
	Held       time.Duration
	OrphanHeld time.Duration
	// Visible is the time within which the backend shows a pod after it received the pod.
	Visible time.Duration
	// TakenOver is the time at which this process began to act, if the pod is older, so that another process may
	// have created it. It is zero for a newer pod.
	TakenOver time.Time
}

// Step is the next action of the sync lane for one pod.
type Step int

const (
	// Rest does nothing: the pod is in its desired state, or on its way there.
	Rest Step = iota
	// Wait does nothing, because an obstacle remains.
	Wait
	// Forget drops the knowledge about the name: the API server has no pod with it, and nothing runs under it at the backend. Ended pods
	// that the backend keeps are still remembered.
	Forget

	// Look asks the backend for the pods of the name, and counts the wanted pod as missing, or the others as
	// orphans.
	Look
	// ReadLive reads the pod from the API server itself.
	ReadLive
	// Fail records that the backend has lost the pod, and that the pod has failed.
	Fail
	// Recreate records that the backend has lost the pod and must create it again.
	Recreate

	// Retry ends the pass with an error, because the backend did not answer. The pass is retried after a pause.
	Retry
	// Create calls CreatePod, if the node has room for the pod and the backend has the features that it needs.
	Create
	// Adopt records that the backend has the pod, without calling the backend.
	Adopt
	// Update calls UpdatePod.
	Update
	// Stop calls DeletePod for the pod in the API server.
	Stop
	// Stopped records that the backend has confirmed the stop.
	Stopped
	// Gone records that the backend lacks a pod after a request to stop it.
	Gone
	// Missing records that the backend lacks a pod that it accepted.
	Missing
	// Relist requests a list of all pods soon. One list serves all pods that need it.
	Relist
	// DeleteOrphan calls DeletePod with the backend's copy of an unwanted pod.
	DeleteOrphan
)

// Asks reports whether another decision follows the step, because the step adds a fact.
func (s Step) Asks() bool { return s >= Look && s <= Recreate }

// Steps is a set of steps.
type Steps uint32

// Has reports whether the set contains the step.
func (s Steps) Has(step Step) bool { return s&(1<<step) != 0 }

// Add adds a step to the set.
func (s *Steps) Add(step Step) { *s |= 1 << step }

// Decision is a step, and the facts to record with it.
type Decision struct {
	Step Step
	// Again is the pause until the next decision about the pod; 0: the next decision follows an event.
	Again time.Duration
	// Backend is the backend's pod for the step; nil: the backend has none.
	Backend *corev1.Pod
	// Unchanged reports whether the update repeats the spec from before a restart, because the backend keeps no
	// specs.
	Unchanged bool
}

// sooner returns the shorter of two pauses; a pause of 0 means no pause.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// lackedAt returns the time of the request for the newest complete answer that confirms that the pod is missing.
func (f *Facts) lackedAt() time.Time {
	if f.Complete {
		return f.Now
	}
	return f.LackedAt
}

// DoubtfulAbsence reports whether it is uncertain that the backend lacks the wanted pod. While the backend shows
// an ended pod under the name, a list alone is no evidence.
func (f *Facts) DoubtfulAbsence() bool {
	return f.Doubtful || f.isHidden() && Terminal(&f.Named.Status)
}

// isHidden reports whether the backend showed another pod under the name, and did not show the wanted pod.
func (f *Facts) isHidden() bool { return f.Named != nil && f.Own == nil }

// hasListGap reports whether a list lacks the wanted pod and also the pod that GetPod returns for the name.
func (f *Facts) hasListGap() bool { return f.Doubtful && f.isHidden() }

// finished reports whether the provider reported the pod as Succeeded or Failed.
func (f *Facts) finished() bool { return f.Reported == ReportedEnded || f.Reported == ReportedAgain }

// ended reports whether the provider reported the end of the pod, and has not reported the pod as running since
// then.
func (f *Facts) ended() bool { return f.Reported == ReportedEnded }

// isTracked reports whether the record of the node's actions is about the wanted pod.
func (f *Facts) isTracked() bool { return f.isWanted(f.Sent.UID) }

// isWanted reports whether the wanted pod has the UID.
func (f *Facts) isWanted(uid types.UID) bool { return f.API != nil && f.API.UID == uid }

// accepted reports whether the backend has accepted the pod.
func (f *Facts) accepted() bool { return f.isTracked() && f.Sent.Accepted }

// mustStop reports whether the pod in the API server must stop: it is deleted, or has failed.
func (f *Facts) mustStop() bool { return f.API.DeletionTimestamp != nil || f.Failure != nil }

// over reports whether no work is left for the pod, because it has ended.
func (f *Facts) over() bool { return IsOver(f.API, &f.Sent, f.Over) }

// hasStopped reports whether the backend has confirmed the stop of a deleted pod. Other clients may still hold
// the object in the API server.
func (f *Facts) hasStopped() bool {
	return f.Stopped && f.isTracked() && f.API.DeletionTimestamp != nil
}

// IsOver reports whether no work is left for an ended pod until it is deleted, or reported as running. over means that the backend
// confirmed that the pod does not run.
func IsOver(api *corev1.Pod, sent *Sent, over bool) bool {
	if api == nil || api.UID != sent.UID {
		return false
	}
	return over && hasEnded(api)
}
