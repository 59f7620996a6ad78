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
	Left      []types.UID // the pods whose DeletePod was acknowledged and that the backend may keep although they have ended, the newest last
	Shared    bool        // the backend has another pod under the name: what it says by name may be about that
	Witnessed types.UID   // whose deletion was seen in the API server
	Orphan    Orphan
	// Beside is a pod of another UID that the newest list has under the name, and that has not ended; nil: it has none.
	Beside *corev1.Pod
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

// Instances returns the instance of the wanted pod, of the pods that a list has under its name, and its further ones, which run beside that; nil if
// there is none. known is the newest status of the pod, which tells which is which.
func Instances(wanted types.UID, known *corev1.PodStatus, pods []*corev1.Pod) (own *corev1.Pod, further []*corev1.Pod) {
	for _, pod := range pods {
		switch {
		case pod.UID != wanted || own != nil && !differ(own, pod):
		case own == nil:
			own = pod
		case slices.Equal(containerIDs(pod.Status.ContainerStatuses), containerIDs(known.ContainerStatuses)):
			own, further = pod, append(further, own)
		default:
			further = append(further, pod)
		}
	}
	return own, slices.DeleteFunc(further, func(p *corev1.Pod) bool { return Terminal(&p.Status) })
}

// differ reports whether two instances of a pod at the backend can be told apart.
func differ(a, b *corev1.Pod) bool {
	is, was := containerIDs(a.Status.ContainerStatuses), containerIDs(b.Status.ContainerStatuses)
	return len(is) > 0 && len(was) > 0 && !slices.Equal(is, was)
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
