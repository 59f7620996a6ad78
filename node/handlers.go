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

// handler marks the pods that events are about. Nothing is decided on an
// event's payload; it only tells which lane may have something to do, and
// whether that is news enough to end a retry's delay.
func (c *PodController) handler(ctx context.Context) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if pod, ok := obj.(*corev1.Pod); ok && c.wanted(ctx, pod) {
				c.syncLane.AddNow(keyOf(pod))
			}
		},
		UpdateFunc: func(before, after any) {
			old, _ := before.(*corev1.Pod)
			pod, ok := after.(*corev1.Pod)
			if !ok || old == nil || !c.wanted(ctx, pod) && !c.wanted(ctx, old) {
				return
			}
			c.markUpdated(old, pod)
		},
		DeleteFunc: func(obj any) {
			tombstone, silent := obj.(cache.DeletedFinalStateUnknown)
			if silent {
				obj = tombstone.Obj
			}
			if pod, ok := obj.(*corev1.Pod); ok && c.wanted(ctx, pod) {
				c.markDeleted(pod, !silent)
			}
		},
	}
}

func (c *PodController) markUpdated(old, pod *corev1.Pod) {
	key := keyOf(pod)
	resync := old.ResourceVersion == pod.ResourceVersion
	st := c.states.get(key)
	told := st.told(pod)
	switch {
	case old.UID != pod.UID || old.Generation != pod.Generation ||
		!old.DeletionTimestamp.Equal(pod.DeletionTimestamp) ||
		!ptr.Equal(old.DeletionGracePeriodSeconds, pod.DeletionGracePeriodSeconds) || // shorter, and ends in the same second
		lifecycle.Terminal(&old.Status) != lifecycle.Terminal(&pod.Status),
		st.refused != 0 && lifecycle.Differs(pod, st.refused, &told):
		c.syncLane.AddNow(key)
	case resync || pod.Generation == 0 ||
		!maps.Equal(old.Labels, pod.Labels) || !maps.Equal(old.Annotations, pod.Annotations):
		c.syncLane.Add(key)
	}
	if !resync || !c.states.atRest(key, pod) { // there may be thousands of them
		c.statusLane.Add(key)
	}
}

// markDeleted notes whether the deletion was seen to happen. A tombstone says
// only that a list lacked the pod, and that list may be wrong.
func (c *PodController) markDeleted(pod *corev1.Pod, seen bool) {
	key := keyOf(pod)
	if seen {
		c.states.witness(key, pod.UID)
	}
	c.syncLane.AddNow(key)
}

// objectChanged lets a pod that waits for a ConfigMap or Secret try again.
func (c *PodController) objectChanged(pod types.NamespacedName) {
	key := pod.String()
	if c.states.get(key).unready {
		c.syncLane.AddNow(key)
	}
}

func keyOf(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// pod returns the pod in the informer's cache, nil when it is gone or not for
// this controller. It is shared: it must not be changed.
func (c *PodController) pod(ctx context.Context, key string) *corev1.Pod {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil
	}
	pod, err := c.pods.Pods(namespace).Get(name)
	if err != nil || !c.wanted(ctx, pod) {
		return nil
	}
	return pod
}
