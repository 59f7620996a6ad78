// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Facts is the input of Next: everything that is known about the pod of one namespace and name. A separate step
// asks for each further fact that a decision needs, at most once. The answer completes the facts.
type Facts struct {
	Clock
	Wanted
	Done
	Answers
	Others
	Doubt
	Taken Steps // the steps of this pass so far
}

// Clock contains the current time, and the ends of the pod's times.
type Clock struct {
	Now      time.Time
	Turn     time.Time // the latest end of the pod's stop while the node shuts down; zero: it is not the pod's turn
	Deadline time.Time // the end of the pod's active time; zero: no deadline
}

// Wanted is the desired state: the pod in the API server, and the decisions of the node about the pod.
type Wanted struct {
	API     *corev1.Pod // nil: gone, or not a pod of this node
	Failure *PodFailure // the node decided that the pod has failed: it must stop
	OS      string      // the operating system of the node; "": unknown
	// Draining reports whether the node shuts down.
	Draining bool
	// FailUnsupported makes a pod fail that needs a missing feature. Otherwise the pod waits.
	FailUnsupported bool

	Live        *corev1.Pod // the API server's pod under the name, read past every cache; nil: none
	NoRoom      *PodFailure // why the node has no room
	Unsupported string      // the features that the pod needs and the backend lacks
}

// Done is the record of the node's own actions.
type Done struct {
	Sent    Sent // about the UID of API, or about the last one if API is nil
	Told    Told // of the labels and annotations of API
	Stopped bool // the backend has confirmed the stop of Sent.UID
	Over    bool // the pod has ended in the API server, and an answer of the backend showed that it does not run
}

// Answers are the statements of the backend, in reports and in answers to calls.
type Answers struct {
	Reports  bool // the provider reports the states of its pods
	Retell   bool // the backend keeps no specs: it gets the specs from before a restart again
	Finished bool // the provider reported this UID as Succeeded or Failed
	Relapsed bool // after that, the provider reported it as running
	Runs     bool // the provider reported this UID last as not ended, of its own accord

	// Backend is the backend's pod of the name, or nil.
	Backend *corev1.Pod
	// Silent reports whether the backend gave no answer. Silence proves neither presence nor absence.
	Silent bool

	Pods []*corev1.Pod // all pods of the backend
}

// Doubt describes how certain the knowledge about the backend and about the API server is.
type Doubt struct {
	Suspect  bool // there is a reason to ask the backend in any case
	Doubtful bool // GetPod gave no clear answer, and so no pod
	Complete bool // the backend knew, before it was asked, that its answers are complete
	Unlisted bool // the backend has never listed its pods, so no list can confirm its answers by name
	Listed   bool // the backend has shown the missing pod all the same: in its newest list, or in a report
	// LackedAt is the time of the request for the newest complete list that confirms that the pod is missing. It
	// is zero if no list does.
	LackedAt time.Time
	// Held is how long the count of the pods that the backend lacks must not lead to a conclusion about the
	// pod, for example because the backend lacks many pods. OrphanHeld is the same for the backend's pod and the
	// API server.
	Held       time.Duration
	OrphanHeld time.Duration
	// Visible is how long the backend may take to show a pod after it was given the pod.
	Visible time.Duration
	// Earlier reports whether the pod is older than this process, so that another process may have created it.
	// Began is the time at which this process began to act.
	Earlier bool
	Began   time.Time
}

// Step is the next action of the sync lane for one pod.
type Step int

const (
	// Rest does nothing: the pod is in its desired state, or on its way there.
	Rest Step = iota
	// Wait does nothing, because an obstacle remains.
	Wait
	// Forget drops all knowledge about the name: neither side has a pod with it.
	Forget

	// AskByName calls GetPod.
	AskByName
	// AskAll calls GetPods.
	AskAll
	// ReadLive reads the pod from the API server itself.
	ReadLive
	// Admit asks whether the backend has the features that the pod needs and whether the node has room for the
	// pod.
	Admit
	// CountMissing counts the pod as missing at the backend, if the backend lacks it.
	CountMissing
	// CountOrphan counts the backend's pod among the pods that the API server lacks, if the API server lacks it.
	CountOrphan

	// TakeEnd uses the status of an ended pod at the backend as a report.
	TakeEnd
	// Fail records that the pod has failed.
	Fail
	// BeginOrphan records since when only the backend has the pod.
	BeginOrphan
	// Recreate records that the backend lost the pod and must create it again.
	Recreate

	// Retry ends the pass with an error, because the backend did not answer. The pass is tried again after a
	// pause.
	Retry
	// Unsupported shows that the pod waits, because the backend lacks a feature.
	Unsupported
	// Create calls CreatePod.
	Create
	// Adopt records that the backend has the pod, without a call.
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
	// Relist requests a list of all pods soon. The list serves every pod that needs it.
	Relist
	// DeleteOrphan calls DeletePod with the backend's copy of an unwanted pod.
	DeleteOrphan
	// Release frees the resources of the pod. The knowledge about the pod stays for as long as the backend keeps
	// the pod.
	Release
)

// Asks reports whether another decision follows the step: the step asks for a fact, or records one, and so
// completes the facts.
func (s Step) Asks() bool { return s >= AskByName && s <= Recreate }

// Steps is a set of steps.
type Steps uint32

// Has reports whether the set contains the step.
func (s Steps) Has(step Step) bool { return s&(1<<step) != 0 }

// Add adds a step to the set.
func (s *Steps) Add(step Step) { *s |= 1 << step }

// Decision is a step, and the facts to record with it.
type Decision struct {
	Step Step
	// Again is the pause until the next look at the pod; 0: the next look follows news.
	Again time.Duration
	// Backend is the backend's pod that the step is about; nil: the backend has none.
	Backend *corev1.Pod
	// Unchanged reports whether the update repeats the spec from before a restart, because the backend keeps no
	// specs.
	Unchanged bool
	// Failure is the failure to record.
	Failure *PodFailure
	// Shared reports whether the backend has another pod under the name of the wanted one.
	Shared bool
	// Shown reports whether the backend has a pod under the name of the wanted one. SamePod reports whether it
	// is the wanted pod.
	Shown bool
	// Orphan is the news about a pod that only the backend had.
	Orphan OrphanNews
}

// sooner returns the shorter of two pauses; a pause of 0 means none.
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
	return f.Doubtful || f.isHidden() && Terminal(&f.Backend.Status)
}

// isHidden reports whether GetPod returned another pod of the name, and the list lacks the wanted pod.
func (f *Facts) isHidden() bool {
	return f.Backend != nil && !SamePod(f.API, f.Backend) && f.own() == nil
}

// endedBefore reports whether the backend's pod is not the wanted one, and has ended.
func (f *Facts) endedBefore(backend *corev1.Pod) bool {
	return f.API != nil && backend != nil && !SamePod(f.API, backend) && Terminal(&backend.Status)
}

// own returns the wanted pod from the list of all pods of the backend, or nil.
func (f *Facts) own() *corev1.Pod {
	if i := slices.IndexFunc(f.Pods, func(p *corev1.Pod) bool { return p.UID == f.API.UID }); i >= 0 {
		return f.Pods[i]
	}
	return nil
}

// ended reports whether the provider reported the end of the pod, and has not reported the pod as running since
// then.
func (f *Facts) ended() bool { return f.Finished && !f.Relapsed }

// accepted reports whether the backend has accepted the pod.
func (f *Facts) accepted() bool { return f.API != nil && f.API.UID == f.Sent.UID && f.Sent.Accepted }

// mustStop reports whether the pod must not run any longer: it is deleted, or has failed.
func (f *Facts) mustStop() bool {
	return f.API != nil && (f.API.DeletionTimestamp != nil || f.Failure != nil)
}
