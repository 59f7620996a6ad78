// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// CreatePod implements node.PodLifecycleHandler. See the package for lost answers.
func (p *Provider[T]) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	if lacks := p.config.Capabilities.Check(pod); len(lacks) > 0 {
		return errdefs.InvalidInput(capability.Message(lacks))
	}
	if r, ok := p.driver.(Refuser); ok {
		if err := r.Refuse(pod); err != nil {
			return err
		}
	}
	if err := p.wait(ctx); err != nil { // services remember a token only for a while
		return err
	}
	if p.cache.Update(pod) {
		p.doubts.clear(pod.UID)
		return nil
	}
	if p.config.Again != AgainReturnsFirst && p.doubts.open(pod) { // once more when its time is over, because an instance may have appeared
		if _, found, err := p.lookFor(ctx, pod); found || err != nil {
			return err
		}
		if left := p.doubts.settle(pod); left > 0 && p.config.Again == AgainMakesAnother {
			return p.mayAppear(left)
		}
	}
	in, err := p.resolver.resolve(ctx, pod)
	if err != nil {
		return err
	}
	instance, err := p.driver.Create(ctx, in)
	switch {
	case err == nil:
		p.accept(pod, instance)
		p.renewals.set(pod.UID, in.RenewAt)
		return nil
	case isAlreadyMade(err):
		_, found, failed := p.lookFor(ctx, pod)
		if failed == nil && !found {
			p.doubts.add(pod.UID)
			failed = fmt.Errorf("%s has made the pod, and does not show it yet: %w", p.config.Service, err)
		}
		return hide(failed, in.hidden)
	case madeNothing(err):
		return hide(p.refused(ctx, pod, err), in.hidden)
	}
	p.doubts.add(pod.UID) // after the call, because the call may take effect at its end
	p.cache.Hurry()       // if the instance exists, the next round finds it
	if _, says := errdefs.RetryAfterOf(err); !says && p.config.Again != AgainReturnsFirst {
		err = errdefs.RetryAfter(err, askAgain)
	}
	return hide(err, in.hidden)
}

// refused returns the error of a create that has created nothing. An earlier create without a response may have created an instance, and an
// invalid-input error would then fail the pod.
func (p *Provider[T]) refused(ctx context.Context, pod *corev1.Pod, refusal error) error {
	if p.doubts.open(pod) {
		if _, found, err := p.lookFor(ctx, pod); found || err != nil {
			return err
		}
		left := p.doubts.lost(pod.UID) // only creates of this process: an instance of an earlier process may never have existed, and a pod must be able to fail
		if p.doubts.settle(pod); left > 0 {
			after, _ := errdefs.RetryAfterOf(refusal)
			return errdefs.RetryAfter(errors.New(refusal.Error()), max(askAgain, after, p.pause(left)))
		}
	}
	if errdefs.IsInvalidInput(refusal) {
		p.mourn(pod)
	}
	return refusal
}

// UpdatePod implements node.PodLifecycleHandler. For a pod missing at the service, it returns an error of the
// kind not-found.
func (p *Provider[T]) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	have, instance, err := p.known(ctx, pod)
	if err != nil {
		return err
	}
	if u, ok := p.driver.(Updater[T]); ok {
		if err := u.Update(ctx, pod, instance); err != nil {
			return err
		}
		p.cache.Update(pod)
		return nil
	}
	next := pod.DeepCopy()
	err = errors.Join(p.sameImages(have.Spec.InitContainers, next.Spec.InitContainers), p.sameImages(have.Spec.Containers, next.Spec.Containers))
	p.cache.Update(next)
	return err
}

// sameImages returns an error if the image of a container has changed; the container keeps its image.
func (p *Provider[T]) sameImages(have, next []corev1.Container) (err error) {
	for i := range next {
		n := slices.IndexFunc(have, func(c corev1.Container) bool { return c.Name == next[i].Name })
		if n >= 0 && have[n].Image != next[i].Image {
			next[i].Image = have[n].Image
			err = errdefs.InvalidInputf("container %s: %s cannot change the image of a pod that runs", next[i].Name, p.config.Service)
		}
	}
	return err
}

// DeletePod implements node.PodLifecycleHandler. The pod counts as existing until lists lack it or its instance has ended.
func (p *Provider[T]) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	_, instance, err := p.known(ctx, pod)
	if err != nil {
		if errdefs.IsNotFound(err) {
			p.mourn(pod)
		}
		return err
	}
	p.cache.Update(pod) // the pod has its DeletionTimestamp now, so its end is no failure
	if p.restarts != nil {
		if err := p.restarts.settle(ctx, pod.UID); err != nil {
			return err
		}
		if _, now, ok := p.cache.Get(pod.UID); ok {
			instance = now
		}
	}
	err = p.driver.Stop(ctx, pod, instance)
	after, says := errdefs.RetryAfterOf(err)
	switch {
	case err == nil:
	case !errdefs.IsNotFound(err):
		return err
	case p.cache.Unshown(pod.UID):
		p.cache.Hurry()
		return errdefs.RetryAfter(fmt.Errorf("%s has accepted the pod and does not show it yet: the stop is asked for again: %s", p.config.Service, err.Error()), askAgain)
	case says:
		p.cache.Doubted(pod.UID)
		return errdefs.RetryAfter(fmt.Errorf("the states of pods have to say whether it is gone: %s", err.Error()), after)
	default:
		err = nil
	}
	p.cache.Stopping(pod.UID)
	return err
}

// known returns a pod of the service, with its instance. Lists may still lack the pod.
func (p *Provider[T]) known(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, T, error) {
	var none T
	if err := p.wait(ctx); err != nil {
		return nil, none, err
	}
	if have, instance, ok := p.cache.Get(pod.UID); ok {
		p.doubts.clear(pod.UID) // this instance is the missing one
		return have, instance, nil
	}
	if p.config.Unlisted || p.doubts.unsure(pod.UID) {
		instance, found, err := p.lookFor(ctx, pod)
		if found || err != nil {
			return pod, instance, err
		}
		left := p.doubts.lost(pod.UID)
		if all := p.doubts.settle(pod); p.config.Again == AgainMakesAnother { // lists of this service may lack an instance of an earlier process
			left = all
		}
		if left > 0 {
			return nil, none, p.mayAppear(left)
		}
	}
	return nil, none, errdefs.NotFoundf("%s has no pod %s/%s with the UID %s", p.config.Service, pod.Namespace, pod.Name, pod.UID)
}

// lookFor calls Find for an instance that lists lack, and records it.
func (p *Provider[T]) lookFor(ctx context.Context, pod *corev1.Pod) (instance T, found bool, err error) {
	instance, found, err = p.driver.Find(ctx, pod)
	if err != nil {
		return instance, false, fmt.Errorf("look whether %s has the pod already: %w", p.config.Service, err)
	}
	if found {
		p.accept(pod, instance)
	}
	return instance, found, nil
}

// accept records the instance of a pod at the service.
func (p *Provider[T]) accept(pod *corev1.Pod, instance T) {
	p.doubts.clear(pod.UID)
	p.cache.Accepted(pod, instance)
}

// mourn notifies the driver that a pod has nothing at the service.
func (p *Provider[T]) mourn(pod *corev1.Pod) {
	if m, ok := p.driver.(Mourner); ok {
		m.Gone(pod)
	}
}
