// SPDX-License-Identifier: Apache-2.0

// Package lifecycle holds the rules of a pod's life as pure functions. Next decides the next action for one pod,
// and Publish decides what the API server must be told about the pod.
//
// The guarantee: decisions depend on their arguments only. There is no client, clock or goroutine here; the time
// is an argument.
//
// The surprise: Next also decides which question to ask, and which fact only to record. After such a step it is
// called again, with the answer among the facts. The effects on the backend come last.
//
// # The states of a pod
//
// A pod, which is a UID, is in one of these states. The steps are the decisions of Next in the state. Retry
// (when the backend does not answer) can follow in each state. So can Fail: a drain, the active deadline,
// another operating system, no room, a rejection.
//
//	state                                       steps                                    what ends it
//	wanted, and not at the backend              AskByName, Admit, Create                 CreatePod accepts it; its deletion
//	wanted, and nothing can run it              Unsupported                              a change of the pod; its deletion
//	wanted, and its name is another pod's       the steps of the other pod, Wait         the other pod has gone
//	at the backend, and unknown to this process AskByName, Adopt or Update               it is accepted
//	accepted and unchanged                      Rest                                     a change; a list without it; its deletion
//	accepted, and changed since                 AskByName, Update                        UpdatePod accepts it
//	accepted, and the backend lacks it          CountMissing, Missing, Relist, ReadLive  it shows; after 10 s Recreate or Fail; a quarantine first
//	                                                                                     if many are missing
//	must stop: deleted or failed                Stop                                     DeletePod answers
//	asked to stop                               AskByName, TakeEnd, Gone, Relist, Stop   the backend shows its end or lacks it: Stopped
//	stopped                                     Rest                                     the status lane removes the object, if it is deleted
//	ended in the API server                     AskByName, TakeEnd, Rest                 its deletion; a report that it runs, and then Stop
//	at the backend only (an orphan)             BeginOrphan, CountOrphan, ReadLive,      it has gone; the API server has it after all
//	                                            DeleteOrphan, Wait
//	ended, told to stop, kept by the backend    AskAll, Release                          a list without it
//	on neither side                             Forget                                   the state is dropped
package lifecycle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Next decides the next step for one pod.
func Next(f *Facts) Decision {
	if failure := nextFailure(f); failure != nil {
		return Decision{Step: Fail, Failure: failure}
	}
	d := next(f)
	d.Again = sooner(d.Again, f.untilDeadline())
	return d
}

func next(f *Facts) Decision {
	switch {
	case f.Taken.Has(AskByName):
	case f.API == nil && f.Stopped && len(f.Left) == 0 && !f.Orphan.Present:
		return Decision{Step: Forget}
	case !f.Suspect && f.settled():
		return nextBeside(f)
	case f.stopsUnseen():
		return Decision{Step: Stop}
	default:
		return Decision{Step: AskByName}
	}
	if f.Silent && (f.API == nil || f.API.DeletionTimestamp == nil) {
		return Decision{Step: Retry}
	}
	backend, first := f.identify()
	switch {
	case first != nil:
		return *first
	case f.API == nil && backend == nil && f.Backend != nil:
		return Decision{Step: Release, Orphan: OrphanGone} // the backend keeps an ended pod
	case f.waitsBehind(backend):
		return nextBehind(f)
	}
	return nextSeen(f, backend)
}

// nextBehind decides about a pod that must stop while the backend shows another pod under its name. That other
// pod is handled next: the stop must not wait for it.
func nextBehind(f *Facts) Decision {
	if !f.Taken.Has(AskAll) {
		return Decision{Step: AskAll}
	}
	d := nextSeen(f, f.own())
	if d.Orphan = OrphanKept; !d.Step.Asks() {
		d.Again = sooner(d.Again, lookAgain)
	}
	return d
}

// nextSeen decides by the backend's pod.
func nextSeen(f *Facts, backend *corev1.Pod) Decision {
	same := f.API != nil && backend != nil && SamePod(f.API, backend)
	switch {
	case same && Terminal(&backend.Status) && !f.Finished && !f.Taken.Has(TakeEnd):
		return Decision{Step: TakeEnd, Backend: backend}
	case f.API != nil && backend == nil && !f.Taken.Has(CountMissing):
		return Decision{Step: CountMissing}
	case backend != nil && !same:
		d := nextOrphan(f, backend)
		d.Backend, d.Shown = backend, f.API != nil
		return d
	}
	d := nextWanted(f, backend)
	d.Backend, d.Orphan = backend, OrphanGone
	switch {
	case f.Silent:
		d.Orphan = OrphanKept
	case same:
		d.Orphan, d.Shown = f.settledOrphan(), true
	}
	return d
}

// nextWanted decides about the pod in the API server. backend is the same pod at the backend, or nil.
func nextWanted(f *Facts, backend *corev1.Pod) Decision {
	switch {
	case f.API == nil:
		return Decision{Step: Forget}
	case f.API.DeletionTimestamp != nil, f.Failure != nil:
		return nextStop(f, backend)
	case Terminal(&f.API.Status):
		if backend != nil && backend.Status.Phase == corev1.PodRunning && !f.ended() {
			return nextStop(f, backend) // another client declared it finished, or it runs again
		}
		return Decision{}
	case backend == nil:
		return nextAbsent(f)
	case !f.Sent.Accepted && !adoptable(f.API, backend, &f.Sent), f.Sent.Accepted && outdated(f.API, &f.Sent, &f.Told):
		return Decision{Step: Update}
	case !f.Sent.Accepted && f.Retell:
		return Decision{Step: Update, Unchanged: true}
	case !f.Sent.Accepted, !f.Sent.MissingSince.IsZero():
		return Decision{Step: Adopt}
	}
	return Decision{}
}

// settled reports whether no work is left for the pod whatever the backend has, so that the backend need not be
// asked.
func (f *Facts) settled() bool { return f.over() || f.removable() || f.quiet() }

// over reports whether no work is left for the pod, because it has ended.
func (f *Facts) over() bool { return IsOver(f.API, &f.Sent, f.Over) }

// hasStopped reports whether the backend has confirmed the stop of a deleted pod. Other clients may still hold
// the object in the API server.
func (f *Facts) hasStopped() bool {
	return f.Stopped && f.API != nil && f.API.UID == f.Sent.UID && f.API.DeletionTimestamp != nil
}

// IsOver reports whether no work is left for an ended pod until it is deleted, or is seen to run. over reports
// whether an answer of the backend showed that the pod does not run.
func IsOver(api *corev1.Pod, sent *Sent, over bool) bool {
	return over && api != nil && api.UID == sent.UID && hasEnded(api)
}

// removable reports whether the only work left for a deleted pod is the removal of its object. The backend must
// have reported its end and confirmed its stop. An orphan under the name needs a look.
func (f *Facts) removable() bool {
	return f.hasStopped() && f.ended() && !f.Orphan.Present
}

// quiet reports whether the backend has accepted the current version of the pod. The relist notices when the
// backend loses the pod.
func (f *Facts) quiet() bool {
	switch {
	case !f.accepted(), f.mustStop(), Terminal(&f.API.Status), !f.Sent.MissingSince.IsZero():
		return false
	}
	return !outdated(f.API, &f.Sent, &f.Told)
}

// stopsUnseen reports whether the first stop of the pod needs no look at the backend: a list contained the pod,
// and the provider reports it as running. A pod that no list contained is looked up first, because a later
// answer without it would prove nothing.
func (f *Facts) stopsUnseen() bool {
	if !f.accepted() || !f.mustStop() || f.Sent.stopAsked() || !f.Sent.MissingSince.IsZero() {
		return false
	}
	return f.Sent.Shown && f.Runs
}

// outdated reports whether the pod was changed since the backend accepted it, by another writer than the
// provider itself.
func outdated(api *corev1.Pod, sent *Sent, told *Told) bool {
	return sent.Updating || Differs(api, sent.SpecVersion, told)
}

// Differs reports whether the pod has another spec version than spec, or labels and annotations that the backend
// was not told about.
func Differs(api *corev1.Pod, spec uint64, told *Told) bool {
	return spec != SpecVersion(api) || !told.knows(api)
}

// identify returns the backend's pod for the decision, or the step that must come first. By name, the backend
// may answer with another pod than the wanted one, and some backends keep ended pods forever.
func (f *Facts) identify() (backend *corev1.Pod, first *Decision) {
	backend = f.Backend
	if f.Silent { // the stop is requested all the same
		unknown := *f.API
		unknown.Status = corev1.PodStatus{}
		return &unknown, nil
	}
	if backend == nil {
		return nil, nil
	}
	if f.endedBefore(backend) { // the wanted pod may be beside it
		if !f.Taken.Has(AskAll) {
			return nil, &Decision{Step: AskAll, Shared: true}
		}
		own := f.own()
		if own == nil && f.omitted() {
			return nil, &Decision{Step: Wait, Again: askAgain}
		}
		if own != nil {
			backend = own
		}
	}
	none := f.API == nil || f.over() || f.hasStopped() // no pod should run under the name
	other := f.API == nil || !SamePod(f.API, backend)
	switch {
	case !none && !other || !f.hasLeft(backend):
		return backend, nil
	case !f.Taken.Has(AskAll):
		return nil, &Decision{Step: AskAll}
	}
	if other := f.besideLeft(backend); none && other != nil {
		return other, nil
	}
	if other {
		return nil, nil
	}
	return backend, nil
}

// omitted reports whether the list lacks the pod that GetPod returns under the name. Such a list may lack the
// wanted pod, too. The wanted pod may exist although CreatePod failed, or because a former process created it in
// its last moment. Some backends never list ended pods: the list is believed once the wanted pod must have
// shown.
func (f *Facts) omitted() bool {
	if f.Sent.Accepted || f.API.DeletionTimestamp != nil || !f.Now.Before(f.shownAt(f.Sent.AttemptedAt, true)) {
		return false
	}
	return !slices.ContainsFunc(f.Pods, func(p *corev1.Pod) bool { return p.UID == f.Backend.UID })
}

// waitsBehind reports whether the wanted pod must stop while the backend shows another pod under its name.
func (f *Facts) waitsBehind(backend *corev1.Pod) bool {
	return f.mustStop() && !f.Stopped && backend != nil && !SamePod(f.API, backend)
}

// besideLeft returns a pod of the name that has not left, beside one that has, or nil: of several the orphan that is known, whatever the order of the list.
func (f *Facts) besideLeft(left *corev1.Pod) (other *corev1.Pod) {
	for _, p := range f.Pods {
		isOther := p.Namespace == left.Namespace && p.Name == left.Name && !f.hasLeft(p)
		if isOther && (other == nil || p.UID == f.Orphan.UID) {
			other = p
		}
	}
	return other
}

func (f *Facts) hasLeft(backend *corev1.Pod) bool { return HasLeft(backend, f.Left) }
