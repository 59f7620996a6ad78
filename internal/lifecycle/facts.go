// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Facts are what Next decides on: all that is known of the pod of one namespace and name. What is asked for a decision is asked by a step of its own,
// at most once, and completes them.
type Facts struct {
	Clock
	Wanted
	Done
	Answers
	Others
	Doubt
}

// Clock is the time, and when times end.
type Clock struct {
	Now      time.Time
	Turn     time.Time // until when the pod may take to stop, as the node shuts down; zero: it is not its turn
	Deadline time.Time // the end of the pod's active time; zero: it has none
}

// Wanted is what is to be: the pod in the API server, and what the node says of it.
type Wanted struct {
	API     *corev1.Pod // nil: gone, or not this node's
	Failure *PodFailure // the node decided that the pod has failed: it must stop
	OS      string      // of the node; "": unknown
	// Draining says that the node shuts down.
	Draining bool
	// FailUnsupported says that a pod fails that asks for what the backend does not have; else it waits.
	FailUnsupported bool

	ReadLive bool        // the API server was asked past every cache
	Live     *corev1.Pod // the pod that it has under the name; nil: none

	Admitted    bool        // room was asked for
	NoRoom      *PodFailure // why the node has none
	Unsupported string      // what the pod asks for and the backend does not have
}

// Done is what the node has done.
type Done struct {
	Sent     Sent // about the UID of API, or about the last one if API is nil
	Told     Told // of the labels and annotations of API
	Stopped  bool // the backend has confirmed the stop of Sent.UID
	Over     bool // the pod has ended in the API server, and the backend did not run it when it was asked
	EndTaken bool // the report of the pod's end, as the backend shows it, was taken
}

// Answers are what the backend says: in reports, and when it is asked.
type Answers struct {
	Reports  bool // the provider reports how its pods are
	Retell   bool // the backend keeps no specs: it is told those from before a restart
	Finished bool // the provider reported this UID as Succeeded or Failed
	Relapsed bool // after that, the provider reported it as running
	Runs     bool // the provider reported this UID last as not ended, of its own accord

	ByName bool // GetPod was called
	// Backend is the pod that the backend has under the name; nil: none.
	Backend *corev1.Pod
	// Silent says that the backend did not answer, which is neither presence nor absence.
	Silent bool
	// ByList says that GetPod failed in a way that says nothing, and a list told, which may be old.
	ByList bool

	All  bool          // GetPods was called
	Pods []*corev1.Pod // all that the backend has
}

// Doubt is how sure it is what the backend has, and how sure what the API server has.
type Doubt struct {
	Suspect  bool // there is a reason to ask the backend, whatever is known
	Doubtful bool // GetPod gave no clear answer, and so no pod
	Complete bool // the backend knew, before it was asked, that its answers are complete
	Unlisted bool // the backend has never listed its pods, so that no list can confirm what it says by name
	Listed   bool // the backend has shown the missing pod nevertheless: its newest list has it, or it was reported
	// LackedAt is when the newest complete list that confirms that the pod is missing was asked for; zero if none does.
	LackedAt time.Time
	// Counted says that the pod was counted among those that the backend lacks, and Held for how long nothing may be
	// concluded from that, because it lacks many, for example. OrphanCounted and OrphanHeld are the same for the backend's pod
	// and the API server.
	Counted       bool
	Held          time.Duration
	OrphanCounted bool
	OrphanHeld    time.Duration
	// Visible is how long after it was given a pod the backend may take to show it.
	Visible time.Duration
	// Earlier says that the pod is older than this process, which began to act then: another one may have created it before.
	Earlier bool
	Began   time.Time
}

// Step is what the sync lane does next for one pod.
type Step int

const (
	// Rest does nothing: the pod is where it should be, or on its way.
	Rest Step = iota
	// Wait does nothing, as what is in the way is not over.
	Wait
	// Forget lets go of all that is known under the name: neither side has anything there.
	Forget

	// AskByName calls GetPod.
	AskByName
	// AskAll calls GetPods.
	AskAll
	// ReadLive reads the pod from the API server itself.
	ReadLive
	// Admit asks whether the backend has what the pod asks for and the node has room for it.
	Admit
	// CountMissing counts the pod among those that the backend lacks, if it does.
	CountMissing
	// CountOrphan counts the backend's pod among those that the API server lacks, if it does.
	CountOrphan

	// TakeEnd takes what the backend shows of a pod that has ended for a report.
	TakeEnd
	// Fail remembers that the pod has failed.
	Fail
	// BeginOrphan remembers since when only the backend has the pod.
	BeginOrphan
	// KeepLeft remembers that the backend keeps a pod that has ended and was stopped.
	KeepLeft
	// Recreate remembers that the backend lost the pod and is to get it again.
	Recreate

	// Retry ends the pass with an error, as the backend did not answer: it is tried again after a pause.
	Retry
	// Unsupported tells that the pod waits, as the backend does not have what it asks for.
	Unsupported
	// Create calls CreatePod.
	Create
	// Adopt remembers that the backend has the pod, without a call.
	Adopt
	// Update calls UpdatePod.
	Update
	// Stop calls DeletePod for the pod in the API server.
	Stop
	// Stopped remembers that the backend has confirmed the stop.
	Stopped
	// Gone remembers that the backend lacks a pod that it was asked to stop.
	Gone
	// Missing remembers that the backend lacks a pod that it accepted.
	Missing
	// Relist asks for a list of all pods soon, for all that need one.
	Relist
	// DeleteOrphan calls DeletePod with the backend's copy of a pod that nobody wants.
	DeleteOrphan
	// Release lets go of what the pod used. What is known of it stays for as long as the backend keeps it.
	Release
)

// Asks reports whether another decision follows the step: it asks for something, or remembers it, and completes the facts.
func (s Step) Asks() bool { return s >= AskByName && s <= Recreate }

// Decision is a step and what else is remembered with it.
type Decision struct {
	Step Step
	// Again is after which time to look again; 0: when there is news.
	Again time.Duration
	// Backend is the pod of the backend that the step is about; nil: it has none.
	Backend *corev1.Pod
	// Unchanged says that the backend is told what it was told before a restart, as it keeps no specs.
	Unchanged bool
	// Failure is the one to remember.
	Failure *PodFailure
	// Shared says that the backend has another pod under the name of the wanted one.
	Shared bool
	// Shown says that the backend has a pod under the name of the wanted one; SamePod tells whether it is that one.
	Shown bool
	// Orphan says what is known now of a pod that only the backend had.
	Orphan OrphanNews
}

// sooner returns the shorter of two pauses, of which 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// lackedAt is when the newest complete answer that confirms that the pod is missing was asked for.
func (f *Facts) lackedAt() time.Time {
	if f.Complete {
		return f.Now
	}
	return f.LackedAt
}

// DoubtfulAbsence reports whether it is not clear that the backend lacks the wanted pod. While it tells of another one by the name, a
// list alone is no evidence.
func (f *Facts) DoubtfulAbsence() bool {
	return f.Doubtful || f.endedBefore(f.Backend) && f.own() == nil
}

// endedBefore reports whether the backend's pod is not the wanted one, and has ended.
func (f *Facts) endedBefore(backend *corev1.Pod) bool {
	return f.API != nil && backend != nil && !SamePod(f.API, backend) && Terminal(&backend.Status)
}

// own returns the wanted pod among all that the backend has.
func (f *Facts) own() *corev1.Pod {
	if i := slices.IndexFunc(f.Pods, func(p *corev1.Pod) bool { return p.UID == f.API.UID }); i >= 0 {
		return f.Pods[i]
	}
	return nil
}

// ended reports whether the provider reported the end of the pod, and not since then that it runs.
func (f *Facts) ended() bool { return f.Finished && !f.Relapsed }

// accepted reports whether the backend has accepted the pod.
func (f *Facts) accepted() bool { return f.API != nil && f.API.UID == f.Sent.UID && f.Sent.Accepted }

// mustStop reports whether the pod must not run any longer: it is deleted, or has failed.
func (f *Facts) mustStop() bool {
	return f.API != nil && (f.API.DeletionTimestamp != nil || f.Failure != nil)
}
