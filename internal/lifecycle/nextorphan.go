// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"
)

const (
	// orphanAge is how long a pod must be unwanted before the backend deletes it, when its deletion was not
	// seen. A pod that this process ran has been in the API server, so orphanAgeKnown is enough for it. That
	// time lets all the tombstones of one list arrive, so that a mass deletion is noticed.
	orphanAge      = 10 * time.Second
	orphanAgeKnown = 2 * time.Second
	// orphanHeldFor is the longest pause until the next look at an orphan while the API server lacks many pods.
	orphanHeldFor = time.Minute
)

// nextOther decides about the other pods at the backend under the name: the step for the first of them that is
// due, else the pause until the next look at them. Rest means that none of them needs a step.
func nextOther(f *Facts) Decision {
	var waits Decision
	for i := range f.Others {
		o := &f.Others[i]
		if !f.isUnwanted(o) {
			continue
		}
		d := nextOrphan(f, o)
		if d.Backend = o.Pod; d.Step != Wait {
			return d
		}
		d.Again = sooner(d.Again, waits.Again)
		waits = d
	}
	return waits
}

// nextOrphan decides about a pod at the backend that differs from the pod in the API server, or that the API
// server does not have at all. The pod is deleted on evidence: it was an orphan for a while, there are not many
// orphans at once, and a live read confirms it. The first condition does not apply to a pod whose deletion was
// seen, except beside the wanted pod, which does not wait for it. The second one does not apply to a pod whose
// deletion is known in any way.
func nextOrphan(f *Facts, o *Other) Decision {
	if wait := o.stopping(f.Now); wait > 0 {
		return Decision{Step: Wait, Again: wait}
	}
	if o.Stale { // the pod is told to stop again only if the backend shows it again
		return Decision{Step: Wait, Again: askAgain}
	}
	left, atOnce := o.Since.Add(f.orphanAge(o)).Sub(f.Now), o.Deleted && !f.holdsName()
	switch {
	case left > 0 && !atOnce:
		return Decision{Step: Wait, Again: left}
	case f.OrphanHeld > 0 && !Terminal(&o.Pod.Status) && !f.isDeleted(o):
		return Decision{Step: Wait, Again: min(f.OrphanHeld, orphanHeldFor)}
	case !f.Taken.Has(ReadLive):
		return Decision{Step: ReadLive}
	case f.Live != nil && f.Live.UID == o.UID:
		// The pod is wanted after all: the cache is behind, or the pod does not belong to this controller.
		return Decision{Step: Wait, Again: askAgain}
	}
	return Decision{Step: DeleteOrphan}
}

// isUnwanted reports whether another pod must stop, or be removed from the backend. An ended pod beside the
// wanted one is left to the backend.
func (f *Facts) isUnwanted(o *Other) bool {
	if o.Pod == nil || o.HasLeft() || f.isWanted(o.UID) {
		return false
	}
	return !Terminal(&o.Pod.Status) || !f.holdsName()
}

// HasOrphan reports whether one of the other pods seems to be an orphan. A pod does not in three cases: its
// deletion is known, the wanted pod runs beside it, or it has ended and so has nothing to lose.
func (f *Facts) HasOrphan() bool {
	return !f.holdsName() && slices.ContainsFunc(f.Others, func(o Other) bool {
		if o.Pod == nil || Terminal(&o.Pod.Status) {
			return false
		}
		return !f.isWanted(o.UID) && !f.isDeleted(&o)
	})
}

// mayHaveOther reports whether the backend has shown another pod under the name, or may still have a pod that was
// told to stop.
func (f *Facts) mayHaveOther() bool {
	return slices.ContainsFunc(f.Others, func(o Other) bool { return o.Pod != nil || !o.Asked.IsZero() })
}

// holdsName reports whether the wanted pod has the name at the backend, or needs it no more: the backend has
// accepted it, or it has stopped. It then does not wait for the others.
func (f *Facts) holdsName() bool { return f.accepted() || f.over() || f.hasStopped() }

// orphanAge returns how long the pod must be an orphan before the backend deletes it.
func (f *Facts) orphanAge(o *Other) time.Duration {
	if f.Sent.Accepted && f.Sent.UID == o.UID {
		return orphanAgeKnown
	}
	return orphanAge
}

// isDeleted reports whether another pod is known to be deleted in the API server: the deletion was seen, or a
// newer pod has the name.
func (f *Facts) isDeleted(o *Other) bool {
	if o.Deleted || f.API == nil || o.Pod.CreationTimestamp.IsZero() {
		return o.Deleted
	}
	return !f.API.CreationTimestamp.Before(&o.Pod.CreationTimestamp)
}

// stopping returns the pause until the next check whether the pod has stopped. It returns 0 if the stop must
// be requested, or requested again.
func (o *Other) stopping(now time.Time) time.Duration {
	waited := now.Sub(o.Asked)
	if waited >= OrphanGrace(o.Pod)+askAgain { // or no stop was requested
		return 0
	}
	return stopLook(waited)
}
