// SPDX-License-Identifier: Apache-2.0

// Package lifecycle holds the rules of a pod's life as pure functions: what
// must the backend be told next (Next), and what must the API server be told
// (Publish).
//
// The guarantee: decisions depend on their arguments only. There is no client,
// clock or goroutine here; the time is an argument.
//
// What surprises: an error of a provider's GetPod is neither presence nor
// absence. It never comes here; the caller looks again later.
package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ReportedWithin is how long the report of a pod's end may be on its way. For so long after a stop the backend is not asked, and
// after it was seen without the pod it may still tell how that ended.
const ReportedWithin = 250 * time.Millisecond

const (
	// missingAfter is how long a pod must be missing at the backend before it
	// counts as lost: a list of an eventually consistent backend may lag.
	missingAfter = 10 * time.Second
	// inFlight is how long a call of a process that was killed may take to have its effect at a backend that knows
	// what it has.
	inFlight = 2 * time.Second
	// confirmedFor is how long a list confirms that a pod is lost: some take the better part of it.
	confirmedFor = time.Minute
	// stopAgainAfter is how long after the end of the grace period a stop that
	// was acknowledged but did not happen is asked for again.
	stopAgainAfter = 30 * time.Second
)

// Sent is what the sync lane remembers about one pod: what the backend was
// told and what it acknowledged. The zero value knows nothing.
type Sent struct {
	UID types.UID
	// Generation is that of the pod which the backend was created with or accepted
	// last. SpecVersion is that of the pod that it accepted last.
	Generation  int64
	SpecVersion uint64
	// Attempted says that CreatePod was called, with whatever result, and AttemptedAt when last; zero if that was
	// before a restart.
	Attempted   bool
	AttemptedAt time.Time
	// Accepted says that the backend acknowledged the pod or was seen to have it.
	Accepted   bool
	AcceptedAt time.Time
	// Updating says that UpdatePod was called and has not succeeded since: nobody knows which
	// pod the backend has.
	Updating bool
	// Recreate says that the backend lost the pod and is to get it again.
	Recreate bool
	// MissingSince is when the backend was first seen without an accepted pod.
	MissingSince time.Time
	// Shown says that the backend has shown the pod since it was given it.
	Shown bool
	// StopAskedAt and StopGrace (seconds) are the last stop request, if any.
	StopAskedAt time.Time
	StopGrace   int64
	// StopAcked says that a DeletePod returned without error, StopMissing that the backend
	// did not have the pod then.
	StopAcked   bool
	StopMissing bool
	// GoneSince is when the backend was first seen without the pod after the last stop request, if it reports.
	GoneSince time.Time
}

// Facts are what Next decides on.
type Facts struct {
	API      *corev1.Pod // the pod in the API server; nil: gone, or not this node's
	Sent     Sent        // about the UID of API, or about the last one if API is nil
	Told     Told        // of the labels and annotations of API
	Backend  *corev1.Pod // the pod that the backend has under this name; nil: none
	Finished bool        // the provider reported this UID as Succeeded or Failed
	Relapsed bool        // after that, the provider reported it as running
	Failure  *PodFailure // the node decided that the pod has failed: it must stop
	Reports  bool        // the provider reports how its pods are
	Retell   bool        // the backend keeps no specs: it is told those from before a restart
	Now      time.Time

	// What follows is about a pod that the backend does not have.

	// Held is how long nothing may be concluded from that, because the backend lacks many, for example.
	Held time.Duration
	// Doubtful says that this was no clear answer.
	Doubtful bool
	// Complete says that the backend knows that its answers are complete.
	Complete bool
	// LackedAt is when the newest complete list that confirms it was asked for; zero if none does.
	LackedAt time.Time
	// Listed says that the backend has shown the pod nevertheless: its newest list has it, or it was reported.
	Listed bool
	// Visible is how long after it was given a pod the backend may take to show it.
	Visible time.Duration
	// Earlier says that the pod is older than this process, which began to act then: a former one may have created it.
	Earlier bool
	Began   time.Time
}

// Step is what the sync lane does next for one pod.
type Step int

const (
	// Rest does nothing.
	Rest Step = iota
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
	// Orphan collects evidence that nobody wants the backend's pod, and then
	// calls DeletePod with the backend's copy.
	Orphan
	// Missing remembers that the backend lacks a pod that it accepted.
	Missing
	// Relist asks for a list that confirms that the pod is lost.
	Relist
	// Lost gives up a missing pod: it is created again, or has failed, by its
	// restart policy.
	Lost
)

// Decision is a step and, if Again is not 0, the time after which to look again.
type Decision struct {
	Step  Step
	Again time.Duration
}

// Next decides what the backend must be told about one pod.
func Next(f Facts) Decision {
	switch {
	case f.API == nil && f.Backend == nil:
		return Decision{}
	case f.API == nil, f.Backend != nil && !SamePod(f.API, f.Backend):
		return Decision{Step: Orphan}
	case f.API.DeletionTimestamp != nil, f.Failure != nil:
		return nextStop(f)
	case Terminal(&f.API.Status):
		if f.Backend != nil && f.Backend.Status.Phase == corev1.PodRunning && (!f.Finished || f.Relapsed) {
			return nextStop(f) // somebody else declared it finished, or it runs again
		}
		return Decision{}
	case f.Backend == nil:
		return nextAbsent(f)
	case !f.Sent.Accepted && (f.Retell || !adoptable(f.API, f.Backend)),
		f.Sent.Accepted && outdated(f.API, &f.Sent, &f.Told):
		return Decision{Step: Update}
	case !f.Sent.Accepted, !f.Sent.MissingSince.IsZero():
		return Decision{Step: Adopt}
	}
	return Decision{}
}

// Quiet reports whether Next rests for this pod whatever the backend has, so
// that the backend need not be asked. The relist notices when the backend loses
// a pod.
func Quiet(api *corev1.Pod, sent Sent, told Told, failure bool) bool {
	return api != nil && api.DeletionTimestamp == nil && !failure && sent.MissingSince.IsZero() &&
		sent.UID == api.UID && sent.Accepted && !outdated(api, &sent, &told) && !Terminal(&api.Status)
}

// StopsUnseen reports whether Next stops this pod whatever the backend has of it, so that the backend need not be
// asked before its first stop.
func StopsUnseen(api *corev1.Pod, sent Sent, failure bool) bool {
	return api != nil && (api.DeletionTimestamp != nil || failure) && sent.UID == api.UID && sent.Accepted &&
		sent.StopAskedAt.IsZero() && !sent.StopAcked && !sent.StopMissing && sent.MissingSince.IsZero()
}

// outdated reports whether the pod was changed since the backend accepted it, by others than
// the provider itself.
func outdated(api *corev1.Pod, sent *Sent, told *Told) bool {
	return sent.Updating || Differs(api, sent.SpecVersion, told)
}

// Differs reports whether the pod has another spec than that of the version, or labels and annotations that
// the backend was not told of.
func Differs(api *corev1.Pod, spec uint64, told *Told) bool {
	return spec != SpecVersion(api) || !told.knows(api)
}

// nextStop decides for a pod that must not run any longer.
func nextStop(f Facts) Decision {
	asked := !f.Sent.StopAskedAt.IsZero()
	grace := StopGrace(f.API, f.Failure)
	waited := f.Now.Sub(f.Sent.StopAskedAt)
	gone := f.Backend == nil && (f.Sent.StopAcked || f.Sent.StopMissing)
	switch {
	case f.Backend == nil && !f.Earlier && !Started(f.API, f.Sent):
		return Decision{Step: Stopped}
	case gone && hiddenFor(f) > 0:
		return Decision{Again: min(hiddenFor(f), max(waited/2, 250*time.Millisecond))}
	case gone && f.Sent.StopAcked && f.Doubtful && !f.Finished && waited < time.Duration(grace)*time.Second+missingAfter:
		return Decision{Again: missingAfter} // silence confirms no stop; after the time that it had, the acknowledgement counts
	case gone && f.Reports && !f.Finished && f.Sent.GoneSince.IsZero():
		return Decision{Step: Gone, Again: ReportedWithin} // backends forget a pod and then tell how it ended
	case gone && !f.Finished && f.Now.Sub(f.Sent.GoneSince) < ReportedWithin:
		return Decision{Again: ReportedWithin - f.Now.Sub(f.Sent.GoneSince)}
	case gone && f.Sent.StopAcked:
		return Decision{Step: Stopped}
	case gone:
		return nextNotFound(f, waited)
	case f.Backend == nil:
		return Decision{Step: Stop} // it was created, with whatever outcome: make sure
	case (f.Sent.StopAcked || f.Sent.StopMissing) && (Terminal(&f.Backend.Status) || f.Finished):
		return Decision{Step: Stopped}
	case f.Sent.StopMissing && f.Sent.StopGrace == grace && waited < missingAfter:
		return Decision{Again: missingAfter - waited} // it was not there, and now it is: the backend is behind itself
	case !asked, !f.Sent.StopAcked, f.Sent.StopGrace != grace,
		waited > time.Duration(grace)*time.Second+stopAgainAfter:
		return Decision{Step: Stop}
	}
	return Decision{Again: min(max(waited/2, 250*time.Millisecond), 10*time.Second)}
}

// hiddenFor returns how long a pod may still run although the backend does not show it, because it is too new. What was
// shown once, or has finished, is not.
func hiddenFor(f Facts) time.Duration {
	given, visible := f.Sent.AttemptedAt, f.Visible
	if f.Earlier && f.Sent.StopMissing && f.API.Status.Phase != corev1.PodRunning && given.IsZero() {
		given = f.Began // before the restart, so then at the latest
		if f.Complete {
			visible = min(visible, inFlight)
		}
	}
	if given.IsZero() || f.Sent.Shown || f.Finished {
		return 0
	}
	return given.Add(visible).Sub(f.Now)
}

// nextNotFound decides for a pod that must stop and of which the backend says twice that it has none. That
// confirms the stop, unless the backend lacks many that it should have, which takes a while to be known, or
// a list has it.
func nextNotFound(f Facts, waited time.Duration) Decision {
	had := f.Sent.Accepted || HasRun(f.API) || f.Earlier
	runs := f.Listed && (!f.Finished || f.Relapsed) // a report of its end is not one that it runs
	again := missingAfter - waited
	if !f.Sent.MissingSince.IsZero() {
		waited = max(waited, f.Now.Sub(f.Sent.MissingSince))
	}
	switch {
	case f.Held > 0:
		return Decision{Again: min(f.Held, missingAfter)}
	case had && !f.Complete && !f.Finished && waited < missingAfter:
		return Decision{Again: missingAfter - waited}
	case runs && again > 0:
		return Decision{Again: again}
	case runs:
		return Decision{Step: Stop}
	case had && !f.Complete && !f.Finished && !Terminal(&f.API.Status) && f.LackedAt.Before(f.Sent.StopAskedAt):
		return Decision{Step: Relist, Again: missingAfter / 2} // what came since the last list may be missing, too
	}
	return Decision{Step: Stopped}
}

// HasRun reports whether the status shows that the backend had the pod, before
// a restart for example, and does not show that it has ended.
func HasRun(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning || pod.Status.StartTime != nil && !Terminal(&pod.Status)
}

// nextAbsent decides for a wanted pod that the backend does not have.
func nextAbsent(f Facts) Decision {
	switch {
	case f.Finished:
		return Decision{} // the backend forgets what has ended
	case !f.Sent.Accepted && (f.Sent.Recreate || !HasRun(f.API)):
		return Decision{Step: Create}
	case f.Sent.MissingSince.IsZero():
		return Decision{Step: Missing, Again: missingAfter}
	}
	lostAt := f.Sent.MissingSince.Add(missingAfter)
	if settled := f.Sent.AcceptedAt.Add(f.Visible); settled.After(lostAt) {
		lostAt = settled
	}
	switch left := lostAt.Sub(f.Now); {
	case left > 0:
		return Decision{Again: left}
	case f.Held > 0:
		return Decision{Again: min(f.Held, missingAfter)}
	case f.Listed:
		return Decision{Again: missingAfter} // GetPod and GetPods disagree: presence is believed
	case f.LackedAt.Before(lostAt), f.Now.Sub(f.LackedAt) > confirmedFor:
		// An older list does not tell what happened to the pods that came since, and so not whether many are missing.
		return Decision{Step: Relist, Again: missingAfter / 2}
	}
	return Decision{Step: Lost}
}

// SamePod reports whether b speaks about a. A backend that keeps no UID is
// trusted to mean the pod of that name.
func SamePod(a, b *corev1.Pod) bool { return b.UID == "" || a.UID == b.UID }

// Terminal reports whether the pod has Succeeded or Failed.
func Terminal(s *corev1.PodStatus) bool {
	return s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed
}

// Grace returns the grace period in seconds that a stop of the pod has: of its
// deletion, else of its spec, else that which the API server sets.
func Grace(pod *corev1.Pod) int64 {
	switch {
	case pod.DeletionGracePeriodSeconds != nil:
		return *pod.DeletionGracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		return *pod.Spec.TerminationGracePeriodSeconds
	}
	return corev1.DefaultTerminationGracePeriodSeconds
}

// ForeignOS reports whether a pod that has not run yet asks for another operating
// system than the node's; "" is a node that does not tell.
func ForeignOS(pod *corev1.Pod, os string) bool {
	unborn := pod.Status.Phase == "" || pod.Status.Phase == corev1.PodPending
	return unborn && os != "" && pod.Spec.OS != nil && string(pod.Spec.OS.Name) != os
}

// Deadline returns when the pod must have ended (spec.activeDeadlineSeconds
// after status.startTime), and false if never.
func Deadline(pod *corev1.Pod) (time.Time, bool) {
	if pod.Spec.ActiveDeadlineSeconds == nil || pod.Status.StartTime == nil {
		return time.Time{}, false
	}
	return pod.Status.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second), true
}
