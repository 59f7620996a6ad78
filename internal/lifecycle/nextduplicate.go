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

// Duplicate is a pod that runs at the backend beside the wanted one, under the same name:
// of another UID, or a second instance of the same. GetPod tells of one of them
// only, so it takes a list to find it. One that has ended needs no stop, and a backend that deletes
// by name would stop the wanted one.
type Duplicate struct {
	Pod   *corev1.Pod
	Since time.Time // of the first list that had it
	Seen  time.Time // of the newest
}

// DuplicateStops are the requests to stop a duplicate.
type DuplicateStops struct {
	At    time.Time // of the last DeletePod that was acknowledged
	Tries int       // DeletePods
}

// Of returns the requests to stop the duplicate: none, if they were for an earlier one, or for the same before a list lacked it.
func (s DuplicateStops) Of(d *Duplicate) DuplicateStops {
	if s.At.Before(d.Since) {
		return DuplicateStops{}
	}
	return s
}

// At returns what is known of the duplicate when a list has found, or nil.
func (d *Duplicate) At(found *corev1.Pod, now time.Time) *Duplicate {
	switch {
	case found == nil:
		return nil
	case d == nil || Differ(d.Pod, found):
		return &Duplicate{Pod: found, Since: now, Seen: now}
	}
	return &Duplicate{Pod: found, Since: d.Since, Seen: now}
}

// due returns from when on a list that has the duplicate is reason to stop it.
func (d *Duplicate) due(stops DuplicateStops) time.Time {
	if stops.Tries == 0 {
		return d.Since.Add(duplicateAge)
	}
	rest := min(duplicateAge<<min(stops.Tries-1, 10), duplicateRest)
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
	switch due := d.due(f.Stops.Of(d)); {
	case f.Now.Before(due):
		settled.Again = due.Sub(f.Now)
	case !f.ReadLive && (d.Seen.Before(due) || f.Now.Sub(d.Seen) >= duplicateAge):
		settled.Step = RelistAtRest // one list for all of them, and a fresh one: the duplicate may have gone since
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

// Differ reports whether two pods at the backend can be told apart.
func Differ(a, b *corev1.Pod) bool {
	is, was := containerIDs(a.Status.ContainerStatuses), containerIDs(b.Status.ContainerStatuses)
	return a.UID != b.UID || len(is) > 0 && len(was) > 0 && !slices.Equal(is, was)
}

func containerIDs(statuses []corev1.ContainerStatus) (ids []string) {
	for _, s := range statuses {
		if s.ContainerID != "" {
			ids = append(ids, s.ContainerID)
		}
	}
	slices.Sort(ids)
	return ids
}
