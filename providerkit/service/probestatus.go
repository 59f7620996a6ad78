// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/probing"
)

// newProber returns the prober of a driver. Its cache is set later.
func newProber[T any](config Config, driver Driver[T], by Prober[T], failing func() error) *prober[T] {
	p := &prober[T]{
		config: config, driver: driver, by: by, failing: failing, wake: make(chan struct{}, 1), known: map[types.UID]map[string]*probed{}, byID: map[string]*probed{},
		changed: map[types.UID]bool{}, ended: map[types.UID]ending{},
	}
	p.asks = config.Probes(probing.Config{
		Exec: p.exec, Changed: p.mark, Event: p.event, ExecSlack: sessionTime + execEnd, Tries: 1, AtOnce: config.ProbesAtOnce,
	})
	return p
}

// run probes until ctx ends.
func (p *prober[T]) run(ctx context.Context) {
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { p.asks.Run(ctx) })
	ticker := time.NewTicker(forgetEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.forgetGone()
		case <-p.wake:
		}
		p.mu.Lock()
		changed := p.changed
		p.changed = map[types.UID]bool{}
		p.mu.Unlock()
		for uid := range changed {
			p.cache.Refresh(uid)
			p.actOn(ctx, uid, &beside)
		}
	}
}

// status builds the status of a pod from its instance and the probe results, and records the containers. It is
// called with the lock of the cache held.
func (p *prober[T]) status(pod *corev1.Pod, instance T) corev1.PodStatus {
	status := p.base(pod, instance)
	status.ContainerStatuses, status.InitContainerStatuses = slices.Clone(status.ContainerStatuses), slices.Clone(status.InitContainerStatuses)
	_, restarts := p.driver.(Restarter[T])
	running := map[string]bool{}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			c, s := &list[i], statusIn(&status, list[i].Name)
			if s == nil {
				continue
			}
			if restarts && p.counts {
				p.count(pod.UID, StateOf(pod, c.Name), s)
			}
			lacking := p.by.Lacking(pod, c)
			if s.State.Running == nil || lacking == (Probes{}) && !restarts {
				continue
			}
			running[c.Name] = true
			p.begin(pod.UID, idOf(pod, s), s)
			if lacking != (Probes{}) {
				p.see(pod, &status, c, s, lacking)
			}
		}
	}
	p.endBut(pod.UID, running)
	p.goesOn(pod, &status)
	p.explain(pod, &status)
	return status
}

// statusIn returns the status of a container, for changes, or nil.
func statusIn(status *corev1.PodStatus, name string) *corev1.ContainerStatus {
	return StateOf(&corev1.Pod{Status: *status}, name)
}

// see records a running container, and writes the probe results into its status.
func (p *prober[T]) see(pod *corev1.Pod, status *corev1.PodStatus, c *corev1.Container, s *corev1.ContainerStatus, lacking Probes) {
	t := probing.Target{
		Pod: pod, Container: p.with(c, lacking), ID: idOf(pod, s), StartedAt: s.State.Running.StartedAt.Time, Running: true,
		Earlier: toldOf(pod, s),
	}
	for _, ip := range status.PodIPs {
		t.PodIPs = append(t.PodIPs, ip.IP)
	}
	if len(t.PodIPs) > 0 || !byNetwork(lacking) {
		p.asks.Ensure(t)
	}
	result, asked := p.asks.Result(t.ID)
	if !asked {
		result.Started = lacking.Startup == nil
		result.Ready = result.Started && lacking.Readiness == nil
	}
	s.Started = new((s.Started == nil || *s.Started) && result.Started)
	s.Ready = s.Ready && result.Ready
}

// with returns a container with only these probes. Probes by command run no more often than the configuration
// allows. The first startup probe runs as early as the pod requests, because the container waits for it.
func (p *prober[T]) with(c *corev1.Container, lacking Probes) *corev1.Container {
	next := *c
	least := int32((p.config.ExecProbeEvery + time.Second - 1) / time.Second)
	seldom := func(of *corev1.Probe) *corev1.Probe {
		if of == nil {
			return nil
		}
		period := cmp.Or(max(0, of.PeriodSeconds), 10)
		if of.Exec == nil || period >= least {
			return of
		}
		slow := *of
		slow.PeriodSeconds = least
		if of == lacking.Startup {
			slow.InitialDelaySeconds = cmp.Or(of.InitialDelaySeconds, period)
		}
		return &slow
	}
	next.StartupProbe, next.LivenessProbe, next.ReadinessProbe = seldom(lacking.Startup), seldom(lacking.Liveness), seldom(lacking.Readiness)
	return &next
}

// byNetwork reports whether one of the probes is a network probe.
func byNetwork(all Probes) bool {
	for _, of := range []*corev1.Probe{all.Startup, all.Liveness, all.Readiness} {
		if of != nil && of.Exec == nil {
			return true
		}
	}
	return false
}
