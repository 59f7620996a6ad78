// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Others are what is known of other pods at the backend under the name of the wanted one, and of what it
// keeps of that.
type Others struct {
	Previous  types.UID   // an older pod of the name that the backend may still have
	Left      []types.UID // the pods that the backend keeps although they ended and DeletePod was acknowledged, the newest last
	Shared    bool        // the backend has another pod under the name: what it says by name may be about that
	Witnessed types.UID   // whose deletion was seen in the API server
	Orphan    Orphan
	Duplicate *Duplicate
	Stops     DuplicateStops
}

// Orphan is the progress with a pod that only the backend has.
type Orphan struct {
	UID     types.UID
	Since   time.Time
	Asked   time.Time // of the last DeletePod that was acknowledged
	Present bool      // there is one
}

// OrphanNews is what a decision says of a pod that only the backend had.
type OrphanNews int

const (
	// OrphanKept is no news.
	OrphanKept OrphanNews = iota
	// OrphanWanted says that the pod is wanted after all.
	OrphanWanted
	// OrphanGone says that the backend does not have it any more.
	OrphanGone
)

// NewOrphan is the progress with a pod when it is first seen that only the backend has it. A stop that the backend
// acknowledged while the pod was in the API server counts.
func NewOrphan(uid types.UID, sent *Sent, since time.Time) Orphan {
	o := Orphan{UID: uid, Since: since, Present: true}
	if sent.StopAcked && sent.UID == uid {
		o.Asked = sent.StopAskedAt
	}
	return o
}

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
	At     time.Time // of the answer to the last DeletePod
	Tries  int       // DeletePods
	Failed bool      // the last was not acknowledged; it may have stopped the duplicate all the same
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
