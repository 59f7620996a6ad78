// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// tells replaces the function that passes reports on.
func tells(pass func(p *corev1.Pod, notify func(*corev1.Pod))) func(*calls) {
	return func(c *calls) {
		c.notify = func(ctx context.Context, notify func(*corev1.Pod)) {
			c.Provider.NotifyPods(ctx, func(p *corev1.Pod) { pass(p, notify) })
		}
	}
}

func reportDefects() []defect {
	return []defect{
		{name: "statuses that go backwards", caught: "reports/order", wrap: breaks(tells(func(p *corev1.Pod, notify func(*corev1.Pod)) {
			notify(p)
			if p.Status.Phase == corev1.PodRunning {
				late := p.DeepCopy()
				late.Status.Phase = corev1.PodPending
				notify(late)
				notify(p)
			}
		}))},
		{name: "ends that are not final", caught: "reports/final", wrap: breaks(tells(func(p *corev1.Pod, notify func(*corev1.Pod)) {
			notify(p)
			if p.Status.Phase == corev1.PodFailed {
				other := p.DeepCopy()
				other.Status.Phase = corev1.PodSucceeded
				notify(other)
				notify(p)
			}
		}))},
		{name: "ends that are not told", caught: "reports/prompt", also: []string{
			"deletion/exit-code", "deletion/told", "reports/after-restart", "reports/final", "reports/order", "reports/own", "reports/whole",
		}, wrap: breaks(tells(func(p *corev1.Pod, notify func(*corev1.Pod)) {
			if p.Status.Phase == corev1.PodRunning {
				notify(p)
			}
		}))},
		{name: "reports with fewer restarts than before", caught: "reports/restarts", wrap: breaks(tells(func(p *corev1.Pod, notify func(*corev1.Pod)) {
			notify(p)
			if s := p.Status.ContainerStatuses; len(s) > 0 && s[0].RestartCount > 0 {
				late := p.DeepCopy()
				late.Status.ContainerStatuses[0].RestartCount = 0
				notify(late)
			}
		}))},
		{name: "reports without a UID", caught: "reports/whole", wrap: breaks(tells(func(p *corev1.Pod, notify func(*corev1.Pod)) {
			nameless := p.DeepCopy()
			nameless.UID = ""
			notify(nameless)
			notify(p)
		}))},
		{name: "reports that change afterwards", caught: "reports/own", races: true, wrap: breaks(tells(func(p *corev1.Pod, notify func(*corev1.Pod)) {
			notify(p)
			p.Status.Message = "sent"
		}))},
		{name: "reports from inside the lock", caught: "reports/no-lock", wrap: breaks(func(c *calls) {
			lock := make(chan struct{}, 1) // fake time stands still while a goroutine waits for a mutex
			tells(func(p *corev1.Pod, notify func(*corev1.Pod)) {
				lock <- struct{}{}
				defer func() { <-lock }()
				notify(p)
			})(c)
			c.get = func(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
				lock <- struct{}{}
				defer func() { <-lock }()
				return c.Provider.GetPod(ctx, namespace, name)
			}
		})},
		{name: "no reports of pods of before a restart", caught: "reports/after-restart", wrap: breaks(func(c *calls) {
			var mine uids
			c.create = func(ctx context.Context, pod *corev1.Pod) error {
				mine.add(pod.UID)
				return c.Provider.CreatePod(ctx, pod)
			}
			tells(func(p *corev1.Pod, notify func(*corev1.Pod)) {
				if mine.contains(p.UID) {
					notify(p)
				}
			})(c)
		})},
		{name: "a last report of containers that run", caught: "deletion/told", also: []string{"deletion/exit-code"}, wrap: breaks(func(c *calls) {
			var removed uids
			c.remove = func(ctx context.Context, pod *corev1.Pod) error {
				removed.add(pod.UID)
				return c.Provider.DeletePod(ctx, pod)
			}
			tells(func(p *corev1.Pod, notify func(*corev1.Pod)) {
				if removed.contains(p.UID) && p.Status.Phase != corev1.PodRunning {
					for i := range p.Status.ContainerStatuses {
						p.Status.ContainerStatuses[i].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
					}
				}
				notify(p)
			})(c)
		})},
	}
}
