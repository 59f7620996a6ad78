// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// stopAgain is the interval at which the provider is asked again to stop a pod.
const stopAgain = 2 * time.Second

// remove asks the provider to stop a pod, and does not wait for the end.
func (p *pods) remove(ctx context.Context, asked *corev1.Pod) ([]wire.PodStatus, error) {
	unlock, err := p.lock(ctx, asked.UID)
	if err != nil {
		return nil, err
	}
	defer unlock()
	k := p.get(asked.UID)
	if k == nil {
		return nil, errdefs.NotFoundf("the plugin has no pod with the UID %q", asked.UID)
	}
	stop := stopping(k.Pod, asked)
	p.mu.Lock()
	begun, over := k.Deleted != nil, !k.gone.IsZero()
	k.Deleted = stop
	kept := k.record
	p.mu.Unlock()
	if over {
		return p.statuses([]*corev1.Pod{asked}), p.store.remove(asked.UID) // an earlier removal may have failed
	}
	// Stop the pod even if the record could not be written. The client then gets an error and asks again,
	// because a restarted plugin would not know of the deletion.
	unwritten := p.keepDeleted(k, kept)
	if err := p.provider.DeletePod(context.WithoutCancel(ctx), p.given(stop)); err != nil && !errdefs.IsNotFound(err) {
		log.G(ctx).WithError(err).Warn("The provider does not stop the pod yet; it is asked again")
	}
	if !begun {
		p.working.Go(func() { p.stop(k) })
	}
	if unwritten != nil {
		return nil, fmt.Errorf("the pod stops, and would start again with the plugin: %w", unwritten)
	}
	return p.statuses([]*corev1.Pod{asked}), nil
}

// keepDeleted writes a record that the pod must stop. If the pod has gone meanwhile, keepDeleted removes the
// record again, because it has secrets.
func (p *pods) keepDeleted(k *pod, kept record) error {
	if err := p.store.write(kept); err != nil {
		return err
	}
	p.mu.Lock()
	gone := !k.gone.IsZero()
	p.mu.Unlock()
	if gone {
		return p.store.remove(kept.Pod.UID)
	}
	return nil
}

// stopping returns a copy of the pod that must stop within the requested grace period.
func stopping(have, asked *corev1.Pod) *corev1.Pod {
	s := have.DeepCopy()
	s.DeletionGracePeriodSeconds = asked.DeletionGracePeriodSeconds
	now, grace := metav1.Now(), int64(podspec.Grace(s)/time.Second)
	s.DeletionTimestamp, s.DeletionGracePeriodSeconds = &now, &grace
	return s
}

// stop repeats the request to stop a pod until the provider no longer has the pod.
func (p *pods) stop(k *pod) {
	ticker := time.NewTicker(stopAgain / 10)
	defer ticker.Stop()
	for asked := time.Now(); ; {
		got, err := p.provider.GetPod(p.ctx, k.Pod.Namespace, k.Pod.Name)
		if errdefs.IsNotFound(err) || err == nil && (got == nil || got.UID != k.Pod.UID) {
			break
		}
		if err == nil && ended(got.Status.Phase) || time.Since(asked) > stopAgain {
			asked = time.Now()
			p.mu.Lock()
			stop := k.Deleted
			p.mu.Unlock()
			if err := p.provider.DeletePod(p.ctx, p.given(stop)); errdefs.IsNotFound(err) {
				break
			}
		}
		select {
		case <-ticker.C:
		case <-p.ctx.Done():
			return
		}
	}
	p.mu.Lock()
	k.gone = time.Now()
	remove := p.clear
	if !k.Accepted { // the provider refused the pod
		remove = p.forget
	}
	p.mu.Unlock()
	if err := remove(k); err != nil {
		log.G(p.ctx).WithError(err).Error("The record of a pod that is gone cannot be removed; it is tried again when the plugin starts")
	}
}

func ended(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}
