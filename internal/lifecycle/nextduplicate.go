// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// duplicateAge is how far apart two lists must be that have a duplicate before it is stopped.
	duplicateAge = 10 * time.Second
	// duplicateRest is the longest pause between two requests to stop a duplicate that does not stop.
	duplicateRest = 10 * time.Minute
)

// due returns from when on a list that has the duplicate is reason to stop it.
func (d *Duplicate) due(stops DuplicateStops) time.Time {
	if stops.Tries == 0 {
		return d.Since.Add(duplicateAge)
	}
	rest := min(duplicateAge<<min(stops.Tries-1, 10), duplicateRest)
	if stops.Failed {
		return stops.At.Add(rest)
	}
	return stops.At.Add(OrphanGrace(d.Pod) + rest)
}

// nextDuplicate decides on the duplicate of a pod that is settled, if there is one. It is stopped on evidence: it is in two lists that
// are far enough apart, and the wanted pod is beside it in both and in the API server.
func nextDuplicate(f *Facts) Decision {
	settled := Decision{Orphan: OrphanWanted}
	d := f.Duplicate
	if d == nil {
		return settled
	}
	stops := f.Stops.Of(d)
	switch due := d.due(stops); {
	case f.Now.Before(due):
		settled.Again = due.Sub(f.Now)
		if stops.Failed {
			settled.Step = Wait // not at rest: what failed is still wrong
		}
	case !f.ReadLive && (d.Seen.Before(due) || f.Now.Sub(d.Seen) >= duplicateAge):
		settled.Step = RelistAtRest // one list for all of them, and a fresh one: the duplicate may have gone since
		if stops.Failed {
			settled.Step = Relist
		}
	case !f.ReadLive:
		settled.Step = ReadLive
	case f.Live == nil || f.Live.UID != f.API.UID: // the cache is behind
	default:
		settled.Step, settled.Backend = DeleteDuplicate, d.Pod
	}
	return settled
}

// DuplicateAmong returns the pod that runs beside the wanted one, of those that a list has under its name; nil if
// there is none, or if it cannot be told which is which. known is the newest status of the wanted one.
func DuplicateAmong(wanted types.UID, known *corev1.PodStatus, pods []*corev1.Pod) *corev1.Pod {
	var own *corev1.Pod
	var others []*corev1.Pod
	for _, pod := range pods {
		switch {
		case pod.UID != wanted:
			others = append(others, pod)
		case own == nil:
			own = pod
		case slices.Equal(containerIDs(pod.Status.ContainerStatuses), containerIDs(known.ContainerStatuses)):
			others, own = append(others, own), pod
		default:
			others = append(others, pod)
		}
	}
	if own == nil {
		return nil // the wanted pod is not there: what is under its name is an orphan
	}
	for _, pod := range others {
		if pod.UID != "" && !Terminal(&pod.Status) && Differ(own, pod) {
			return pod
		}
	}
	return nil
}
