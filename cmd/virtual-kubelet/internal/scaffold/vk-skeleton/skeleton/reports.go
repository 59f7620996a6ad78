// SPDX-License-Identifier: Apache-2.0

package skeleton

import (
	"context"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// NotifyPods remembers whom to tell. RunInBackground does it.
func (p *provider) NotifyPods(_ context.Context, notify func(*corev1.Pod)) { p.notify = notify }

// RunInBackground reports pods that changed, until ctx ends. It asks for one list for all pods, however many there are.
func (p *provider) RunInBackground(ctx context.Context) error {
	told := map[types.UID]corev1.PodStatus{}
	ticker := time.NewTicker(p.config.PollInterval.Duration)
	defer ticker.Stop()
	for {
		if err := p.report(ctx, told); err != nil && ctx.Err() == nil {
			log.G(ctx).WithError(err).Warn("The pods at skeleton are not known")
		}
		select {
		case <-ticker.C:
		case <-p.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

// report tells what is new, and removes what has ended and is not wanted any more.
func (p *provider) report(ctx context.Context, told map[types.UID]corev1.PodStatus) error {
	groups, err := p.service.List(ctx, p.node)
	if err != nil {
		return err
	}
	there := map[types.UID]bool{}
	for _, g := range groups {
		there[g.ID] = true
		pod := podOf(g, p.spec(g))
		status := pod.Status
		if last, known := told[g.ID]; !known || !reflect.DeepEqual(last, status) {
			told[g.ID] = status
			if p.notify != nil {
				p.notify(pod)
			}
		}
		if phase := status.Phase; g.Stopping && (phase == corev1.PodSucceeded || phase == corev1.PodFailed) {
			if err := p.service.Remove(ctx, string(g.ID)); err != nil && !errdefs.IsNotFound(err) {
				log.G(ctx).WithError(err).WithField("pod", g.Namespace+"/"+g.Name).Warn("The group of a deleted pod is still at skeleton")
			}
		}
	}
	for uid := range told {
		if !there[uid] {
			delete(told, uid)
		}
	}
	return nil
}
