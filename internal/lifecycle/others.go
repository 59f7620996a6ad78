// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Other is a pod at the backend that is not the wanted pod of its name: the API server has no pod, or a pod of
// another UID.
type Other struct {
	UID types.UID
	// Pod is the newest copy that the backend returned; nil: the backend returned none, or lacks the pod.
	Pod     *corev1.Pod
	Since   time.Time // when the backend first showed it
	Asked   time.Time // time of the last acknowledged DeletePod
	Stale   bool      // the backend has not shown the pod since that DeletePod, so Pod is outdated
	Deleted bool      // its deletion was observed in the API server
}

// HasLeft reports whether the pod has ended after a request to stop it, and the backend merely keeps it. Some
// backends keep ended pods forever.
func (o *Other) HasLeft() bool {
	return o.Pod != nil && !o.Asked.IsZero() && Terminal(&o.Pod.Status)
}

// ChangeOther returns a copy of the list in which the pod with the UID is changed. It adds the pod if the list lacks it.
func ChangeOther(others []Other, uid types.UID, change func(*Other)) []Other {
	others = slices.Clone(others)
	i := slices.IndexFunc(others, func(o Other) bool { return o.UID == uid })
	if i < 0 {
		others, i = append(others, Other{UID: uid}), len(others)
	}
	change(&others[i])
	return others
}

// ShowOther returns the list after the backend has shown a pod. A stop that the backend acknowledged while the pod was in the API server is
// kept.
func ShowOther(others []Other, pod *corev1.Pod, sent *Sent, now time.Time) []Other {
	return ChangeOther(others, pod.UID, func(o *Other) {
		if o.Pod, o.Stale = pod, false; o.Since.IsZero() {
			o.Since = now
		}
		if o.Asked.IsZero() && sent.UID == o.UID && sent.StopAcked {
			o.Asked = sent.StopAskedAt
		}
	})
}

// DropUnlisted returns the list without the pods that the backend has lost: they are not in its list of pods, which was requested at the
// time asked. The list proves nothing about pods that were first seen, or asked to stop, after that time.
func DropUnlisted(others []Other, pods []*corev1.Pod, asked time.Time) []Other {
	return slices.DeleteFunc(slices.Clone(others), func(o Other) bool { return o.isUnlisted(pods, asked) })
}

// HideUnlisted is DropUnlisted for a list that may be incomplete: it keeps pods that were asked to stop, so that the stop is not requested
// again when they reappear.
func HideUnlisted(others []Other, pods []*corev1.Pod, asked time.Time) []Other {
	others = slices.DeleteFunc(slices.Clone(others), func(o Other) bool { return o.Asked.IsZero() && o.isUnlisted(pods, asked) })
	for i := range others {
		if others[i].isUnlisted(pods, asked) {
			others[i].Pod = nil
		}
	}
	return others
}

func (o *Other) isUnlisted(pods []*corev1.Pod, asked time.Time) bool {
	if o.Since.After(asked) || o.Asked.After(asked) {
		return false
	}
	return !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.UID == o.UID })
}

// Instances returns the instance of the wanted pod among the listed pods of its name, or nil, and additional running instances of the same
// pod. known is the newest status of the pod, which identifies the right instance.
func Instances(wanted types.UID, known *corev1.PodStatus, pods []*corev1.Pod) (own *corev1.Pod, further []*corev1.Pod) {
	for _, pod := range pods {
		switch {
		case pod.UID != wanted || own != nil && !areDistinct(own, pod):
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

// areDistinct reports whether two instances of a pod at the backend can be told apart.
func areDistinct(a, b *corev1.Pod) bool {
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
