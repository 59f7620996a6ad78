// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/lifecycle"
)

// deleteOrphan asks the backend to stop an unwanted pod, and checks at once whether it has stopped. api is the pod in the API server that
// has the name, or nil.
func (w *podWorker) deleteOrphan(ctx context.Context, key string, api, backend *corev1.Pod) error {
	if err := w.fence.Allow(ctx); err != nil {
		return err
	}
	now := time.Now()
	pod := deletedCopy(backend, now)
	remove := func(ctx context.Context) error { return w.backend.deletePod(ctx, pod) }
	var err error
	if api != nil {
		err = w.callAboutPod(ctx, key, api, "DeletePod", remove) // the pod's status shows why it waits
	} else {
		err = w.backend.callToChange(ctx, key, "DeletePod", remove)
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return newLaneError(api, eventDeleteFailed, fmt.Errorf("delete pod %s (UID %s), which is no longer in the API server, at the backend: %w", key, backend.UID, err))
	}
	if logger := podLog(ctx, key, backend.UID); lifecycle.Terminal(&backend.Status) {
		logger.Debug("removed an ended pod from the backend, because the API server no longer has it")
	} else {
		logger.Info("stopped a pod at the backend, because the API server no longer has it")
	}
	w.states.changeOther(key, backend.UID, func(o *lifecycle.Other) { o.Asked, o.Stale = now, true })
	w.orphans.forgetPod(key)
	w.syncLane.Add(key)
	return nil
}

// deletedCopy returns a copy of a pod that only the backend has, with a deletion timestamp of now.
func deletedCopy(backend *corev1.Pod, now time.Time) *corev1.Pod {
	pod := backend.DeepCopy()
	seconds := int64(lifecycle.OrphanGrace(backend) / time.Second)
	pod.DeletionGracePeriodSeconds = &seconds
	if pod.DeletionTimestamp == nil {
		pod.DeletionTimestamp = &metav1.Time{Time: now}
	}
	return pod
}
