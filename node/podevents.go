// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// podEvents adds pods to the lanes after API server events.
type podEvents struct{ *podCore }

// eventHandler returns the handler that adds pods to the lanes. No decision uses the payload of an event; it only shows which lane may have
// work, and whether the change ends the delay of a retry.
func (e *podEvents) eventHandler(ctx context.Context) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if pod, ok := obj.(*corev1.Pod); ok && e.wanted(ctx, pod) {
				e.syncLane.AddNow(keyOf(pod))
			}
		},
		UpdateFunc: func(before, after any) {
			old, _ := before.(*corev1.Pod)
			pod, ok := after.(*corev1.Pod)
			if ok && old != nil && (e.wanted(ctx, pod) || e.wanted(ctx, old)) {
				e.markUpdated(old, pod)
			}
		},
		DeleteFunc: func(obj any) {
			tombstone, silent := obj.(cache.DeletedFinalStateUnknown)
			if silent {
				obj = tombstone.Obj
			}
			if pod, ok := obj.(*corev1.Pod); ok && e.wanted(ctx, pod) {
				e.markDeleted(pod, !silent)
			}
		},
	}
}

func (e *podEvents) markUpdated(old, pod *corev1.Pod) {
	key := keyOf(pod)
	resync := old.ResourceVersion == pod.ResourceVersion
	st := e.states.get(key)
	told := st.toldMetadata(pod)
	switch {
	case old.UID != pod.UID, old.Generation != pod.Generation,
		!old.DeletionTimestamp.Equal(pod.DeletionTimestamp),
		!ptr.Equal(old.DeletionGracePeriodSeconds, pod.DeletionGracePeriodSeconds), // shortened, with the end in the same second
		lifecycle.Terminal(&old.Status) != lifecycle.Terminal(&pod.Status),
		st.refused != 0 && lifecycle.Differs(pod, st.refused, &told):
		e.syncLane.AddNow(key)
	case resync, pod.Generation == 0, !maps.Equal(old.Labels, pod.Labels), !maps.Equal(old.Annotations, pod.Annotations):
		e.syncLane.Add(key)
	}
	if !resync || st.restsAt == "" || st.restsAt != pod.ResourceVersion { // skips unchanged pods, because there may be thousands
		e.statusLane.Add(key)
	}
}

// markDeleted handles a deleted pod. seen means that a watch event showed the deletion; a tombstone only means that a list lacked the pod,
// and that list may be wrong.
func (e *podEvents) markDeleted(pod *corev1.Pod, seen bool) {
	key := keyOf(pod)
	if seen {
		e.states.recordDeletion(key, pod.UID)
	}
	e.syncLane.AddNow(key)
}

// objectChanged retries a pod that waits for a ConfigMap or Secret.
func (e *podEvents) objectChanged(pod types.NamespacedName) {
	key := pod.String()
	if e.states.get(key).unready {
		e.syncLane.AddNow(key)
	}
}
