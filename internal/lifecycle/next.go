// SPDX-License-Identifier: Apache-2.0

// Package lifecycle holds the rules of a pod's life as pure functions: what
// must be done next for one pod (Next), and what must the API server be told
// of it (Publish).
//
// The guarantee: decisions depend on their arguments only. There is no client,
// clock or goroutine here; the time is an argument.
//
// What surprises: Next also decides what is to be asked, and what is only to be remembered. After such a step it is called again, with
// the answer among the facts; the effects on the backend come last.
//
// # The states of a pod
//
// A pod, which is a UID, is in one of these states. The steps are what Next decides in it; Retry, when the backend does not answer, can come in each,
// and so can Fail: a drain, the active deadline, another operating system, no room, a rejection.
//
//	state                                       steps                                    what ends it
//	wanted, and not at the backend              AskByName, Admit, Create                 CreatePod accepts it; its deletion
//	wanted, and nothing can run it              Unsupported                              a change of the pod; its deletion
//	wanted, and its name is another pod's       those of the other one, Wait             the other one has gone
//	at the backend, and unknown to this process AskByName, Adopt or Update               it is accepted
//	accepted as it is                           Rest                                     a change; a list without it; its deletion
//	accepted, and changed since                 AskByName, Update                        UpdatePod accepts it
//	accepted, and the backend lacks it          CountMissing, Missing, Relist, ReadLive  it shows; after 10 s Recreate or Fail; a quarantine first
//	                                                                                     where many are lacking
//	must stop: deleted or failed                Stop                                     DeletePod answers
//	asked to stop                               AskByName, TakeEnd, Gone, Relist, Stop   the backend shows its end or lacks it: Stopped
//	stopped                                     Rest                                     the status lane removes the object, if it is deleted
//	ended in the API server                     AskByName, TakeEnd, Rest                 its deletion; a report that it runs, and then Stop
//	at the backend only (an orphan)             BeginOrphan, CountOrphan, ReadLive,      it has gone; the API server has it after all
//	                                            DeleteOrphan, Wait
//	ended, told to stop, kept by the backend    AskAll, KeepLeft, Release                a list without it
//	on neither side                             Forget                                   that is the end
package lifecycle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Next decides what is done next for one pod.
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
	case f.ByName:
	case f.API == nil && f.Stopped && f.Previous == "" && len(f.Left) == 0 && !f.Orphan.Present:
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
		return Decision{Step: Release, Orphan: OrphanGone} // the backend keeps what has ended
	case f.waitsBehind(backend):
		return nextBehind(f)
	}
	return nextSeen(f, backend)
}

// nextBehind decides on a pod that must stop while the backend shows another one under its name, which has its turn then:
// the stop must not wait for that.
func nextBehind(f *Facts) Decision {
	if !f.All {
		return Decision{Step: AskAll}
	}
	d := nextSeen(f, f.own())
	if d.Orphan = OrphanKept; !d.Step.Asks() {
		d.Again = sooner(d.Again, lookAgain)
	}
	return d
}

// nextSeen decides on what the backend has.
func nextSeen(f *Facts, backend *corev1.Pod) Decision {
	same := f.API != nil && backend != nil && SamePod(f.API, backend)
	switch {
	case same && Terminal(&backend.Status) && !f.Finished && !f.EndTaken:
		return Decision{Step: TakeEnd, Backend: backend}
	case f.API != nil && backend == nil && !f.Counted:
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

// nextWanted decides on the pod in the API server, of which backend is what the backend has.
func nextWanted(f *Facts, backend *corev1.Pod) Decision {
	switch {
	case f.API == nil:
		return Decision{Step: Forget}
	case f.API.DeletionTimestamp != nil, f.Failure != nil:
		return nextStop(f, backend)
	case Terminal(&f.API.Status):
		if backend != nil && backend.Status.Phase == corev1.PodRunning && !f.ended() {
			return nextStop(f, backend) // somebody else declared it finished, or it runs again
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

// settled reports whether nothing is left to do for the pod whatever the backend has, so that it need not be asked.
func (f *Facts) settled() bool { return f.over() || f.removable() || f.quiet() }

// over reports whether nothing is left to do for the pod, as it has ended.
func (f *Facts) over() bool { return IsOver(f.API, &f.Sent, f.Over) }

// hasStopped reports whether the backend has confirmed the stop of a deleted pod, which others may still hold in the API server.
func (f *Facts) hasStopped() bool {
	return f.Stopped && f.API != nil && f.API.UID == f.Sent.UID && f.API.DeletionTimestamp != nil
}

// IsOver reports whether nothing is left to do for a pod that has ended until it is deleted, or is seen to run. over says
// that the backend did not run it when it was asked.
func IsOver(api *corev1.Pod, sent *Sent, over bool) bool {
	return over && api != nil && api.UID == sent.UID && hasEnded(api)
}

// removable reports whether nothing is left to do for a deleted pod but the removal of its object: the backend reported its
// end and confirmed its stop, and has nothing else under the name.
func (f *Facts) removable() bool {
	return f.hasStopped() && f.ended() && f.alone()
}

// quiet reports whether the backend has accepted the pod as it is. The relist notices when the backend loses it.
func (f *Facts) quiet() bool {
	switch {
	case !f.accepted(), f.mustStop(), Terminal(&f.API.Status), !f.Sent.MissingSince.IsZero():
		return false
	}
	return !outdated(f.API, &f.Sent, &f.Told)
}

// stopsUnseen reports whether the first stop of the pod needs no look at the backend: a list had it, it is reported as running, and
// nothing else is known under its name. One that no list had is looked for, as an answer without it would prove nothing afterwards.
func (f *Facts) stopsUnseen() bool {
	if !f.accepted() || !f.mustStop() || f.Sent.stopAsked() || !f.Sent.MissingSince.IsZero() {
		return false
	}
	return f.alone() && f.Sent.Shown && f.Runs
}

// alone reports whether the backend is not known to have another pod under the name.
func (f *Facts) alone() bool {
	return f.Previous == "" && !slices.ContainsFunc(f.Left, func(uid types.UID) bool { return uid != f.Sent.UID }) && !f.Shared && f.Beside == nil && !f.Orphan.Present
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

// identify returns which pod of the backend the decision is about, or what is to be done first: by its name the backend may tell
// of another one than the wanted, and some keep for ever what has ended.
func (f *Facts) identify() (backend *corev1.Pod, first *Decision) {
	backend = f.Backend
	if f.Silent { // it is asked for the stop all the same
		unknown := *f.API
		unknown.Status = corev1.PodStatus{}
		return &unknown, nil
	}
	if backend == nil {
		return nil, nil
	}
	if f.endedBefore(backend) { // the wanted one may be beside it
		if !f.All {
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
	backend = f.named(backend)
	none := f.API == nil || f.over() || f.hasStopped() // no pod is to run under the name
	other := f.API == nil || !SamePod(f.API, backend)
	switch {
	case !none && !other || !f.hasLeft(backend):
		return backend, nil
	case !slices.Contains(f.Left, backend.UID): // first: what is known of another one takes the place of what says so
		return nil, &Decision{Step: KeepLeft, Backend: backend}
	case !f.All && f.Backend.UID != "": // one that keeps no UIDs has one pod of a name
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

// omitted reports whether the list lacks what GetPod has under the name, so that it may lack the wanted pod, too, which may have been made although
// CreatePod failed, or by a former process in its last moment. Some backends never list what has ended: that is believed when the pod must have shown.
func (f *Facts) omitted() bool {
	if f.Sent.Accepted || f.API.DeletionTimestamp != nil || !f.Now.Before(f.shownAt(f.Sent.AttemptedAt, true)) {
		return false
	}
	return !slices.ContainsFunc(f.Pods, func(p *corev1.Pod) bool { return p.UID == f.Backend.UID })
}

// waitsBehind reports whether the wanted pod must stop while the backend shows another one under its name.
func (f *Facts) waitsBehind(backend *corev1.Pod) bool {
	return f.mustStop() && !f.Stopped && backend != nil && !SamePod(f.API, backend)
}

// besideLeft returns a pod of the name that has not left, beside one that has, or nil: of several the orphan that is known, whatever the order of the list.
func (f *Facts) besideLeft(left *corev1.Pod) (other *corev1.Pod) {
	for _, p := range f.Pods {
		isOther := p.Namespace == left.Namespace && p.Name == left.Name && p.UID != "" && !f.hasLeft(p)
		if isOther && (other == nil || p.UID == f.Orphan.UID) {
			other = p
		}
	}
	return other
}

// named returns the backend's pod with the UID that it must have, if the
// backend keeps none. What runs after the older one had left is not that: the wanted one was made, although the answer said otherwise.
func (f *Facts) named(backend *corev1.Pod) *corev1.Pod {
	previous := f.Previous
	if f.Sent.Attempted && slices.Contains(f.Left, previous) && !Terminal(&backend.Status) {
		previous = ""
	}
	if previous == "" && f.API != nil && !f.Sent.Attempted { // the wanted one was not given yet
		switch {
		case f.Orphan.Present:
			previous = f.Orphan.UID
		case len(f.Left) > 0:
			previous = f.Left[len(f.Left)-1] // it is kept, or an old list has it
		}
	}
	return Named(backend, &f.Sent, previous, f.API != nil)
}

func (f *Facts) hasLeft(backend *corev1.Pod) bool {
	return HasLeft(backend, &f.Sent, f.Left, &f.Orphan)
}
