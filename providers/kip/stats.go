// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"context"
	"sync"

	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// askedAtOnce is the maximum number of concurrent requests for statistics.
const askedAtOnce = 16

// Stats implements service.Measurer. It leaves out pods whose agents do not answer.
func (d *driver) Stats(ctx context.Context, of []service.Target[instance]) ([]statsv1alpha1.PodStats, error) {
	all := make([]*statsv1alpha1.PodStats, len(of))
	room := make(chan struct{}, askedAtOnce)
	var asked sync.WaitGroup
	for n, t := range of {
		a, err := d.agentOf(t.Instance)
		if err != nil || t.Instance.said == nil || t.Instance.said.Ended {
			continue
		}
		asked.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			limited, cancel := context.WithTimeout(ctx, requestTime)
			defer cancel()
			if s, err := a.Stats(limited); err == nil {
				s.PodRef = statsv1alpha1.PodReference{Name: t.Pod.Name, Namespace: t.Pod.Namespace, UID: string(t.Pod.UID)}
				all[n] = &s
			}
		})
	}
	asked.Wait()
	var some []statsv1alpha1.PodStats
	for _, s := range all {
		if s != nil {
			some = append(some, *s)
		}
	}
	return some, ctx.Err()
}
