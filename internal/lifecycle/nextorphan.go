// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"
)

const (
	// orphanAge is how long a pod must be unwanted before the backend deletes it, if its deletion was not observed. A pod that this process
	// ran has been in the API server, so orphanAgeKnown is enough. It is long enough for all tombstones of one list to arrive, so that a
	// mass deletion is detected.
	orphanAge      = 10 * time.Second
	orphanAgeKnown = 2 * time.Second
	// orphanHeldFor is the longest pause until the next decision about an orphan while the API server lacks many pods.
	orphanHeldFor = time.Minute
)

// nextOther decides about the other pods at the backend under the name: the step for the first pod that is due, else the pause until the
// next one is due. Rest means that none of them needs a step.
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

// nextOrphan decides about a pod at the backend that differs from the pod in the API server, or that the API server does not have at all.
// The pod is deleted under three conditions: it was an orphan for a while, there are not many orphans at once, and a live read confirms it.
// The first condition does not apply if the deletion of the pod was observed and the wanted pod waits for the name. The second condition
// does not apply if the deletion is known in any way.
func nextOrphan(f *Facts, o *Other) Decision {
	if wait := o.stopping(f.Now); wait > 0 {
		return Decision{Step: Wait, Again: wait}
	}
	if o.Stale { // another stop is requested only if the backend shows the pod again
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

// isUnwanted reports whether another pod must stop, or be removed from the backend. If the wanted pod holds the name, the backend itself
// cleans up ended pods.
func (f *Facts) isUnwanted(o *Other) bool {
	if o.Pod == nil || o.HasLeft() || f.isWanted(o.UID) {
		return false
	}
	return !Terminal(&o.Pod.Status) || !f.holdsName()
}

// HasOrphan reports whether one of the other pods seems to be an orphan. Three kinds of pods do not count: pods whose deletion is known,
// pods beside the running wanted pod, and ended pods.
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

// holdsName reports whether the wanted pod has the name at the backend or no longer needs it: the backend has accepted it, or it has ended
// or stopped. It then does not wait for the other pods.
func (f *Facts) holdsName() bool { return f.accepted() || f.over() || f.hasStopped() }

// orphanAge returns how long the pod must be an orphan before the backend deletes it.
func (f *Facts) orphanAge(o *Other) time.Duration {
	if f.Sent.Accepted && f.Sent.UID == o.UID {
		return orphanAgeKnown
	}
	return orphanAge
}

// isDeleted reports whether another pod is known to be deleted in the API server: the deletion was observed, or a newer pod has the name.
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
