// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Others are the known facts about other pods at the backend under the name of the wanted pod, and about the
// ended pods that the backend keeps.
type Others struct {
	Left      []types.UID // the pods whose DeletePod was acknowledged and that the backend may keep although they have ended, the newest last
	Witnessed types.UID   // whose deletion was seen in the API server
	Orphan    Orphan
	// Beside is a pod of another UID that the newest list has under the name and that has not ended, or nil.
	Beside *corev1.Pod
}

// Orphan is the progress with a pod that only the backend has.
type Orphan struct {
	UID     types.UID
	Since   time.Time
	Asked   time.Time // time of the last acknowledged DeletePod
	Present bool      // there is an orphan
}

// OrphanNews is the news of a decision about a pod that only the backend had.
type OrphanNews int

const (
	// OrphanKept means no news.
	OrphanKept OrphanNews = iota
	// OrphanWanted means that the pod is wanted after all.
	OrphanWanted
	// OrphanGone means that the backend no longer has the pod.
	OrphanGone
)

// NewOrphan returns the progress with a pod when only the backend is first seen to have it. A stop that the
// backend acknowledged while the pod was in the API server counts.
func NewOrphan(uid types.UID, sent *Sent, since time.Time) Orphan {
	o := Orphan{UID: uid, Since: since, Present: true}
	if sent.StopAcked && sent.UID == uid {
		o.Asked = sent.StopAskedAt
	}
	return o
}

// Instances returns the instance of the wanted pod among the listed pods of its name, or nil. It also returns
// further instances of the wanted pod that run beside it. known is the newest status of the pod, which
// identifies the instance.
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
