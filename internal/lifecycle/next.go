// SPDX-License-Identifier: Apache-2.0

// Package lifecycle implements the rules for the lifecycle of a pod as pure functions. Next decides the next action for one pod, and
// Publish decides the next write to the API server.
//
// The guarantee: decisions depend only on their arguments. The package has no client, clock or goroutine; the time is an argument.
//
// Note: Next also returns steps that only ask for or record a fact. After such a step the caller calls Next again with the
// completed facts. Steps that change the backend come last.
//
// # The states of a pod
//
// A pod, identified by its UID, is in one of these states. The steps are the decisions of Next in the state. In each state the step can
// also be Retry, if the backend does not answer, and the pod can fail: because of a drain, the active deadline, another operating system,
// no room, or a rejection.
//
//	state                                       steps                              what ends it
//	wanted, and not at the backend              Look, Create                       CreatePod accepts it; its deletion
//	wanted, and nothing can run it              Create, which shows why            a change of the pod; its deletion
//	wanted, and its name is another pod's       the steps of the other pod, Wait   the other pod has gone
//	at the backend, and unknown to this process Look, Adopt or Update              it is accepted
//	accepted and unchanged                      Rest                               a change; a list without it; its deletion
//	accepted, and changed since                 Look, Update                       UpdatePod accepts it
//	accepted, and the backend lacks it          Look, Missing, Relist, ReadLive    it shows; after 10 s Recreate or Fail; a quarantine
//	                                                                               first if many are missing
//	must stop: deleted or failed                Stop                               DeletePod answers
//	asked to stop                               Look, Gone, Relist, Stop           the backend shows its end or lacks it: Stopped
//	stopped                                     Rest                               the status lane removes the object, if it is deleted
//	ended in the API server                     Look, Rest                         its deletion; a report that it runs, and then Stop
//	at the backend only (an orphan)             Look, ReadLive, DeleteOrphan, Wait it has gone; the API server has it after all
//	ended, told to stop, kept by the backend    Forget                             a list without it
//	on neither side                             Forget                             the state is dropped
package lifecycle

import (
	corev1 "k8s.io/api/core/v1"
)

// Next decides the next step for one pod.
func Next(f *Facts) Decision {
	switch {
	case f.Taken.Has(Look):
	case f.API == nil && f.Stopped && !f.mayHaveOther():
		return Decision{Step: Forget}
	case !f.Suspect && f.settled():
		return f.withOthers(Decision{})
	case f.stopsUnseen():
		return Decision{Step: Stop}
	default:
		return Decision{Step: Look}
	}
	switch {
	case !f.Silent:
		return f.withOthers(nextWanted(f, f.Own))
	case f.API == nil || f.API.DeletionTimestamp == nil:
		return Decision{Step: Retry}
	}
	unknown := *f.API // the stop is requested although the backend did not answer
	unknown.Status = corev1.PodStatus{}
	return nextWanted(f, &unknown)
}

// withOthers completes the decision about the wanted pod with the decision about the other pods of the name. A pod is created, and a name
// is forgotten, only when no other pod uses the name.
func (f *Facts) withOthers(d Decision) Decision {
	other := nextOther(f)
	switch {
	case other.Step == Rest || d.Step.Asks():
		return d
	case d.Step == Create, d.Step == Forget:
		return other
	case d.Step > Wait:
		d.Again = sooner(d.Again, max(other.Again, lookAgain))
		return d
	case other.Step == Wait:
		other.Step = d.Step // the wanted pod does not wait for the other pod
	}
	other.Again = sooner(d.Again, other.Again)
	return other
}

// nextWanted decides about the pod in the API server. backend is the same pod at the backend, or nil.
func nextWanted(f *Facts, backend *corev1.Pod) Decision {
	d := Decision{Backend: backend}
	switch {
	case f.API == nil:
		d.Step = Forget
	case backend == nil && f.Stopped && f.isTracked() && f.mustStop():
	case f.mustStop():
		return nextStop(f, backend)
	case Terminal(&f.API.Status):
		if backend != nil && backend.Status.Phase == corev1.PodRunning && !f.ended() {
			return nextStop(f, backend) // another client declared it finished, or it runs again
		}
	case backend == nil:
		return nextAbsent(f)
	case f.Outdated, !f.Sent.Accepted && !adoptable(f.API, backend, &f.Sent):
		d.Step = Update
	case !f.Sent.Accepted && f.Retell:
		d.Step, d.Unchanged = Update, true
	case !f.Sent.Accepted, !f.Sent.MissingSince.IsZero():
		d.Step = Adopt
	}
	return d
}

// settled reports whether the pod needs no work regardless of the backend's state, so that the backend need not be asked.
func (f *Facts) settled() bool { return f.over() || f.removable() || f.quiet() }

// removable reports whether the only work left for a deleted pod is the removal of its object. The backend must
// have reported its end and confirmed its stop.
func (f *Facts) removable() bool { return f.hasStopped() && f.ended() }

// quiet reports whether the backend has accepted the current version of the pod. If the backend loses the pod, the relist detects it.
func (f *Facts) quiet() bool {
	if !f.accepted() || f.mustStop() || Terminal(&f.API.Status) {
		return false
	}
	return f.Sent.MissingSince.IsZero() && !f.Outdated
}

// stopsUnseen reports whether the pod can be stopped without a lookup first: a list contained the pod, and the provider reports it as
// running. A pod that no list contained is looked up first, because a later answer without it would prove nothing.
func (f *Facts) stopsUnseen() bool {
	if !f.accepted() || !f.mustStop() || f.Sent.stopAsked() {
		return false
	}
	return f.Sent.MissingSince.IsZero() && f.Sent.Shown && f.Reported == ReportedAlive
}

// IsOutdated reports whether the pod was changed since the backend accepted it, by another writer than the
// provider itself.
func IsOutdated(api *corev1.Pod, sent *Sent, told *Told) bool {
	return sent.Updating || Differs(api, sent.SpecVersion, told)
}

// Differs reports whether the pod has another spec version than spec, or labels and annotations that the backend
// was not told about.
func Differs(api *corev1.Pod, spec uint64, told *Told) bool {
	return spec != SpecVersion(api) || !told.knows(api)
}
