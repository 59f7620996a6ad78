// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
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
				s = measured(t.Pod, s)
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

// maxCards is the limit of network interfaces in the statistics of a machine.
const maxCards = 4

// measured returns the statistics of a machine for its pod, and for the containers that the pod has. It drops unknown container names: they would
// become metric labels, and a machine can report any number of them.
func measured(pod *corev1.Pod, said statsv1alpha1.PodStats) statsv1alpha1.PodStats {
	s := statsv1alpha1.PodStats{
		PodRef:    statsv1alpha1.PodReference{Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID)},
		StartTime: said.StartTime, CPU: said.CPU, Memory: said.Memory,
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if n := slices.IndexFunc(said.Containers, func(k statsv1alpha1.ContainerStats) bool { return k.Name == c.Name }); n >= 0 {
			k := said.Containers[n]
			s.Containers = append(s.Containers, statsv1alpha1.ContainerStats{Name: c.Name, StartTime: k.StartTime, CPU: k.CPU, Memory: k.Memory})
		}
	}
	if said.Network == nil {
		return s
	}
	s.Network = &statsv1alpha1.NetworkStats{Time: said.Network.Time, InterfaceStats: said.Network.InterfaceStats}
	if s.Network.Name != "" {
		s.Network.Name = cardName(0)
	}
	for n, card := range said.Network.Interfaces[:min(len(said.Network.Interfaces), maxCards)] {
		card.Name = cardName(n)
		s.Network.Interfaces = append(s.Network.Interfaces, card)
	}
	return s
}

// cardName returns the name of a network interface in the statistics.
func cardName(n int) string { return fmt.Sprintf("eth%d", n) }
