// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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

// nextOrphan decides about a pod at the backend that differs from the pod in the API server, or that the API
// server does not have at all. The pod is deleted on evidence: it was an orphan for a while, there are not many
// orphans at once, and a live read confirms it. If its deletion was seen, or a newer pod of the name is known,
// the first two conditions do not apply.
func nextOrphan(f *Facts, backend *corev1.Pod) Decision {
	o := &f.Orphan
	if !o.Present || o.UID != backend.UID {
		return Decision{Step: BeginOrphan}
	}
	if wait := o.stopping(f.Now, OrphanGrace(backend)); wait > 0 {
		return Decision{Step: Wait, Again: wait}
	}
	if !f.Taken.Has(CountOrphan) {
		return Decision{Step: CountOrphan}
	}
	if !f.SeenDeleted(backend) || f.IsBeside(backend) { // the wanted pod does not wait for the pod beside it
		if left := o.Since.Add(f.orphanAge()).Sub(f.Now); left > 0 {
			return Decision{Step: Wait, Again: left}
		}
		if f.OrphanHeld > 0 && !Terminal(&backend.Status) {
			return Decision{Step: Wait, Again: min(f.OrphanHeld, orphanHeldFor)}
		}
	}
	switch {
	case !f.Taken.Has(ReadLive):
		return Decision{Step: ReadLive}
	case f.Live != nil && f.Live.UID == backend.UID:
		// The pod is wanted after all: the cache is behind, or the pod does not belong to this controller.
		return Decision{Step: Wait, Again: askAgain, Orphan: OrphanWanted}
	}
	return Decision{Step: DeleteOrphan}
}

// nextBeside decides about a settled pod. Another pod that a list has under its name is an orphan; there is no
// other work.
func nextBeside(f *Facts) Decision {
	if f.Beside == nil {
		return Decision{Orphan: f.settledOrphan()}
	}
	d := nextOrphan(f, f.Beside)
	if d.Backend = f.Beside; d.Step == Wait {
		d.Step = Rest // the wanted pod waits for nothing
	}
	return d
}

// IsBeside reports whether the backend's pod runs beside the wanted one, which the backend has accepted.
func (f *Facts) IsBeside(backend *corev1.Pod) bool {
	return f.Beside != nil && f.Beside.UID == backend.UID
}

// settledOrphan returns the news about an orphan when the wanted pod is present. The orphan was the wanted pod,
// unless another pod of the name is still there.
func (f *Facts) settledOrphan() OrphanNews {
	switch {
	case f.Beside != nil && f.Orphan.UID == f.Beside.UID:
		return OrphanKept
	case f.Orphan.UID == f.API.UID:
		return OrphanWanted
	}
	return OrphanGone
}

// orphanAge returns how long the pod must be an orphan before the backend deletes it.
func (f *Facts) orphanAge() time.Duration {
	if f.Sent.Accepted && f.Sent.UID == f.Orphan.UID {
		return orphanAgeKnown
	}
	return orphanAge
}

// SeenDeleted reports whether the backend's pod is known to be deleted in the API server: the deletion was seen,
// or a newer pod has the name.
func (f *Facts) SeenDeleted(backend *corev1.Pod) bool {
	newer := f.API != nil && !backend.CreationTimestamp.IsZero() && !f.API.CreationTimestamp.Before(&backend.CreationTimestamp)
	return f.Witnessed == f.Orphan.UID || newer
}

// stopping returns the pause until the next check whether the orphan has stopped. It returns 0 if the stop must
// be requested, or requested again.
func (o *Orphan) stopping(now time.Time, grace time.Duration) time.Duration {
	waited := now.Sub(o.Asked)
	if waited >= grace+askAgain { // or no stop was requested
		return 0
	}
	return stopLook(waited)
}

// HasLeft reports whether the pod has stopped after a request, and the backend merely keeps it. Some backends
// keep ended pods forever.
func HasLeft(backend *corev1.Pod, left []types.UID) bool {
	return slices.Contains(left, backend.UID) && Terminal(&backend.Status)
}
