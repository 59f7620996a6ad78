// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	corev1listers "k8s.io/client-go/listers/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

// Objects are the sources of volumes.
type Objects struct {
	ConfigMaps corev1listers.ConfigMapLister
	Secrets    corev1listers.SecretLister
}

// ConfigMap returns a ConfigMap in the namespace of the pod.
func (o Objects) ConfigMap(_ context.Context, pod *corev1.Pod, name string) (*corev1.ConfigMap, error) {
	return o.ConfigMaps.ConfigMaps(pod.Namespace).Get(name)
}

// Secret returns a Secret in the namespace of the pod.
func (o Objects) Secret(_ context.Context, pod *corev1.Pod, name string) (*corev1.Secret, error) {
	return o.Secrets.Secrets(pod.Namespace).Get(name)
}

// Provider runs pods on a Cloud.
type Provider struct {
	cloud   *Cloud
	objects Objects
	notify  func(*corev1.Pod)

	queue []*corev1.Pod // guarded by cloud.mu; due reports, in the order of the changes
	wake  chan struct{}
	made  map[types.UID]bool // guarded by cloud.mu; new pods that no list has shown yet
}

// Open returns a provider, as a daemon does when it starts.
func Open(cloud *Cloud, objects Objects) *Provider {
	return &Provider{cloud: cloud, objects: objects, wake: make(chan struct{}, 1), made: map[types.UID]bool{}}
}

// Capabilities returns the features that programs support.
func (p *Provider) Capabilities() capability.Declaration {
	return capability.Only(capability.RunToCompletion, capability.InitContainers, capability.Sidecars, capability.PostStartHooks, capability.PreStopHooks,
		capability.ExecProbes, capability.TerminationMessages, capability.InteractiveContainers,
		capability.EmptyDir, capability.MemoryEmptyDir, capability.ObjectVolumes, capability.SubPath)
}

// AnswersForAllPods reports that the backend's list is complete.
func (p *Provider) AnswersForAllPods() bool { return true }

// NotifyPods keeps the function for reports; RunInBackground calls it.
func (p *Provider) NotifyPods(_ context.Context, notify func(*corev1.Pod)) { p.notify = notify }

// RunInBackground reports every change of a pod, one after the other and without a lock, until ctx ends.
func (p *Provider) RunInBackground(ctx context.Context) error {
	c := p.cloud
	c.mu.Lock()
	c.watchers = append(c.watchers, p)
	for _, q := range c.pods {
		p.queue = append(p.queue, q.withStatus())
	}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for i, w := range c.watchers {
			if w == p {
				c.watchers = append(c.watchers[:i:i], c.watchers[i+1:]...)
				return
			}
		}
	}()
	for {
		c.mu.Lock()
		due := p.queue
		p.queue = nil
		c.mu.Unlock()
		for _, pod := range due {
			if ctx.Err() == nil && p.notify != nil {
				p.notify(pod)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
		}
	}
}

// CreatePod starts a pod. It leaves an existing pod as it is.
func (p *Provider) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	c := p.cloud
	if err := errors.Join(ctx.Err(), c.injectedFault()); err != nil {
		return err
	}
	made, err := newPod(ctx, c, pod, p.objects)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.findPod(pod.Namespace, pod.Name); old != nil {
		made.cancel()
		if old.uid == pod.UID {
			return nil
		}
		return fmt.Errorf("the pod with UID %s has this name until it has stopped", old.uid)
	}
	c.pods = append(c.pods, made)
	p.made[pod.UID] = true
	c.sendState(made)
	go made.runPod()
	if c.loseAnswer {
		c.loseAnswer = false
		return errors.New("the answer is lost")
	}
	return nil
}

// UpdatePod takes over labels and annotations.
func (p *Provider) UpdatePod(_ context.Context, pod *corev1.Pod) error {
	c := p.cloud
	if err := c.injectedFault(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.byUID(pod.UID)
	if q == nil {
		return errdefs.NotFoundf("no pod has the UID %s", pod.UID)
	}
	spec := q.spec.DeepCopy()
	spec.Labels, spec.Annotations = pod.DeepCopy().Labels, pod.DeepCopy().Annotations
	q.spec = spec
	c.sendState(q)
	return nil
}

// DeletePod asks a pod to stop. Its last report has the outcome.
func (p *Provider) DeletePod(_ context.Context, pod *corev1.Pod) error {
	c := p.cloud
	if err := c.injectedFault(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.byUID(pod.UID)
	if q == nil {
		return errdefs.NotFoundf("no pod has the UID %s", pod.UID)
	}
	q.endPod(podspec.Grace(pod))
	return nil
}

// GetPod returns a pod with its status.
func (p *Provider) GetPod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	c := p.cloud
	if err := c.injectedFault(); err != nil {
		return nil, fmt.Errorf("get pod %s/%s: %w", namespace, name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.findPod(namespace, name); q != nil {
		return q.withStatus(), nil
	}
	return nil, errdefs.NotFoundf("get pod %s/%s: the backend does not have it", namespace, name)
}

// GetPodStatus returns the status of a pod.
func (p *Provider) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	pod, err := p.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// GetPods returns every pod: the pods of the list, and the pods that this provider has made since.
func (p *Provider) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	pods, err := p.List(ctx)
	if err != nil {
		return nil, err
	}
	c := p.cloud
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pod := range pods {
		delete(p.made, pod.UID)
	}
	for uid := range p.made {
		if q := c.byUID(uid); q != nil {
			pods = append(pods, q.withStatus())
		} else {
			delete(p.made, uid)
		}
	}
	return pods, nil
}

// List returns the backend's list, which may be stale.
func (p *Provider) List(context.Context) ([]*corev1.Pod, error) {
	c := p.cloud
	if err := c.injectedFault(); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list(), nil
}

// Ping reports whether the backend answers.
func (p *Provider) Ping(context.Context) error { return p.cloud.injectedFault() }

// NotifyNodeStatus does nothing: the node never changes.
func (p *Provider) NotifyNodeStatus(context.Context, func(*corev1.Node)) {}

// ConfigureNode writes the capacity of the node into n: goroutines of this program need little.
func (p *Provider) ConfigureNode(_ context.Context, n *corev1.Node) {
	n.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("100"), corev1.ResourceMemory: resource.MustParse("100Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"), corev1.ResourcePods: resource.MustParse("1000"),
	}
	n.Status.Allocatable = n.Status.Capacity.DeepCopy()
}
