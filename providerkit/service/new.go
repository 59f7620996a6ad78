// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/poll"
)

// New returns the provider of a driver, with the abilities of the driver. It panics if the driver is a Prober
// and Config.Probes is nil.
func New[T any](config Config, driver Driver[T]) *Provider[T] {
	config = config.complete()
	p := &Provider[T]{
		config: config, driver: driver, resolver: resolver{config: config}, brief: brief{lasts: config.Brief, wake: make(chan struct{}, 1)},
		doubts: doubts{seenWithin: config.SeenWithin, earlierWithin: config.EarlierWithin, began: time.Now()},
	}
	_, p.resolver.renews = driver.(Renewer[T])
	if r, ok := driver.(Remover); ok {
		p.leftovers = newLeftovers(r.Remove)
	}
	if _, ok := driver.(Starter[T]); ok {
		p.restarts = newRestarts(config.Backoff)
	}
	lists := poll.Config[T]{
		List: driver.List, Identify: driver.Identify, Status: p.status, Pod: p.InCluster, Had: p.had, Double: p.removeDouble,
		Busy: config.Busy, Rest: config.Rest, Idle: config.Idle, ListEvery: config.ListEvery, SeenWithin: config.SeenWithin, EarlierWithin: config.EarlierWithin,
		LostFor: config.LostFor, Soon: config.Soon, Slowest: config.Slowest,
	}
	if d, ok := driver.(Prober[T]); ok {
		p.prober = newProber(config, driver, d, p.failing)
		p.prober.base, p.prober.counts = p.status, p.restarts == nil
		lists.Status = p.prober.status
	}
	if c, ok := driver.(ChangeLister[T]); ok {
		lists.Changed = c.Changed
	}
	if a, ok := driver.(Annotator[T]); ok {
		lists.Annotations = a.Annotations
	}
	if e, ok := driver.(Ender[T]); ok {
		lists.Ended = e.Ended
	}
	p.cache = poll.New(lists)
	if p.prober != nil {
		p.prober.cache = p.cache
	}
	return p
}

// CapabilitiesOf returns the field Capabilities of a cli.Provider, by the declaration of its configuration.
func CapabilitiesOf[C interface{ Capabilities() capability.Declaration }](load func(path string) (C, error)) func(path string) (capability.Declaration, error) {
	return func(path string) (capability.Declaration, error) {
		config, err := load(path)
		return config.Capabilities(), err
	}
}

// RunInBackground implements node.BackgroundRunner. It polls the service once the pods of the cluster are known: the meaning of instances
// depends on the pods, and the current pods may be from an earlier process.
func (p *Provider[T]) RunInBackground(ctx context.Context) error {
	var beside sync.WaitGroup
	if cache.WaitForCacheSync(ctx.Done(), p.config.Listed) {
		if err := p.begin(); err != nil {
			return err
		}
		if w, ok := p.driver.(Worker); ok {
			beside.Go(func() { w.Work(ctx) })
		}
		if p.leftovers != nil {
			beside.Go(func() { p.leftovers.run(ctx) })
		}
		if p.prober != nil {
			beside.Go(func() { p.prober.run(ctx) })
		}
		if s, ok := p.driver.(Starter[T]); ok {
			beside.Go(func() {
				p.restarts.run(ctx, func(ctx context.Context, uid types.UID) { p.restart(ctx, s, uid) }, p.isKnown)
			})
		}
		if p.config.Brief > 0 {
			beside.Go(func() { p.brief.run(ctx) })
		}
		if r, ok := p.driver.(Renewer[T]); ok {
			beside.Go(func() {
				p.renewals.run(ctx, p.cache.All, func(ctx context.Context, pod *corev1.Pod) time.Time { return p.renew(ctx, r, pod) })
			})
		}
		if f, ok := p.driver.(Follower); ok {
			f.Follow(ctx)
		} else {
			p.cache.Run(ctx)
		}
	}
	beside.Wait()
	if c, ok := p.driver.(Closer); ok {
		c.Close()
	}
	return nil
}

// status returns the status of a pod from its instance, with the restarts applied.
func (p *Provider[T]) status(pod *corev1.Pod, instance T) corev1.PodStatus {
	s := p.driver.Status(pod, instance)
	if p.restarts != nil {
		p.restarts.apply(pod, &s)
	}
	return s
}

// restart starts the container of a pod again.
func (p *Provider[T]) restart(ctx context.Context, s Starter[T], uid types.UID) {
	pod, instance, ok := p.cache.Get(uid)
	if !ok || pod.DeletionTimestamp != nil {
		p.restarts.finish(uid, errDeleted)
		return
	}
	limited, cancel := context.WithTimeout(ctx, startTime)
	next, err := s.Start(limited, pod, instance)
	cancel()
	if err == nil {
		p.cache.Take(ctx, time.Now(), next) // results of earlier requests no longer count
	} else if ctx.Err() == nil {
		log.G(ctx).WithError(err).WithField("pod", pod.Namespace+"/"+pod.Name).Warn("The container of a pod is not started again yet")
	}
	p.restarts.finish(uid, err)
	p.cache.Refresh(uid)
	p.cache.Hurry()
}

// begin records the pods from a possible earlier process.
func (p *Provider[T]) begin() error {
	if p.config.Pods == nil {
		p.doubts.begin(nil, false)
		return nil
	}
	pods, err := p.config.Pods.List(labels.Everything())
	p.doubts.begin(pods, true)
	return err
}

// removeDouble stops the second instance of a pod.
func (p *Provider[T]) removeDouble(ctx context.Context, instance T) {
	id, _ := p.driver.Identify(instance)
	l := log.G(ctx).WithField("pod", id.Namespace+"/"+id.Name).WithField("instance", id.ID)
	l.Warnf("The pod has a second instance at %s, which is stopped", p.config.Service)
	pod, _, ok := p.cache.Get(id.UID)
	if !ok {
		return // the pod was deleted, and lists show when both instances are gone
	}
	if err := p.driver.Stop(ctx, pod, instance); err != nil {
		l.WithError(err).Warn("The second instance of a pod cannot be stopped; the next list has it again")
	}
}

// renew replaces the files of a pod, and returns the time of the next renewal.
func (p *Provider[T]) renew(ctx context.Context, r Renewer[T], pod *corev1.Pod) time.Time {
	_, instance, ok := p.cache.Get(pod.UID)
	if !ok || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return time.Time{}
	}
	in, err := p.resolver.fresh(ctx, pod)
	if err == nil {
		err = hide(r.Renew(ctx, in, instance), in.hidden)
	}
	if err != nil {
		if ctx.Err() == nil {
			log.G(ctx).WithError(err).WithField("pod", pod.Namespace+"/"+pod.Name).Warn("The tokens of a pod are not replaced yet")
		}
		return time.Now().Add(renewalRetry)
	}
	return in.RenewAt
}
