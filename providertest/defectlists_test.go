// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"context"
	"errors"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// declares is a provider with a changed declaration.
type declares struct {
	*inprocess.Provider
	declared capability.Declaration
}

func (d declares) Capabilities() capability.Declaration { return d.declared }

func listDefects() []defect {
	return []defect{
		{name: "errors as empty lists", caught: "lists/outage", wrap: breaks(func(c *calls) {
			c.list = func(ctx context.Context) ([]*corev1.Pod, error) {
				pods, err := c.Provider.GetPods(ctx)
				if err != nil {
					return nil, nil //nolint:nilerr // that is the defect
				}
				return pods, nil
			}
		}), also: []string{"lists/outage-error"}},
		{name: "the list of before in an outage", caught: "lists/outage-error", wrap: breaks(func(c *calls) {
			var mu sync.Mutex
			var last []*corev1.Pod
			c.list = func(ctx context.Context) ([]*corev1.Pod, error) {
				pods, err := c.Provider.GetPods(ctx)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					last = pods
				}
				var copies []*corev1.Pod
				for _, p := range last {
					copies = append(copies, p.DeepCopy())
				}
				return copies, nil //nolint:nilerr // that is the defect
			}
		}), also: []string{"lists/outage"}},
		{name: "an outage that looks like no pod", caught: "lists/get-outage", wrap: breaks(func(c *calls) {
			c.get = func(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
				pod, err := c.Provider.GetPod(ctx, namespace, name)
				if errors.Is(err, inprocess.ErrOutage) {
					return nil, nil
				}
				return pod, err
			}
		})},
		{name: "an outage that looks like no status", caught: "lists/status-outage", wrap: breaks(func(c *calls) {
			c.status = func(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
				s, err := c.Provider.GetPodStatus(ctx, namespace, name)
				if errors.Is(err, inprocess.ErrOutage) {
					return nil, nil
				}
				return s, err
			}
		})},
		{name: "old lists that are believed", caught: "lists/stale", wrap: breaks(func(c *calls) { c.list = c.Provider.List })},
		{name: "a missing pod without a kind", caught: "lists/absent", wrap: breaks(func(c *calls) {
			c.status = func(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
				s, err := c.Provider.GetPodStatus(ctx, namespace, name)
				if errdefs.IsNotFound(err) {
					return nil, errors.New(err.Error())
				}
				return s, err
			}
		})},
		{name: "a status that lags behind the pod", caught: "creation/status", wrap: breaks(func(c *calls) {
			c.status = func(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
				s, err := c.Provider.GetPodStatus(ctx, namespace, name)
				if s != nil {
					s.Phase = corev1.PodPending
				}
				return s, err
			}
		})},
		{name: "cached pods that change in the hands of readers", caught: "lists/private", wrap: breaks(sharing)},
		{name: "pods without a status in lists", caught: "lists/statuses", wrap: breaks(func(c *calls) {
			c.list = func(ctx context.Context) ([]*corev1.Pod, error) {
				pods, err := c.Provider.GetPods(ctx)
				for _, p := range pods {
					p.Status = corev1.PodStatus{}
				}
				return pods, err
			}
		})},
		{name: "a list of one page", caught: "creation/many", wrap: breaks(func(c *calls) {
			c.list = func(ctx context.Context) ([]*corev1.Pod, error) {
				pods, err := c.Provider.GetPods(ctx)
				return pods[:min(len(pods), 10)], err
			}
		})},
		{name: "pods of before a restart that are forgotten", caught: "identity/restart", also: []string{"leftovers/none"}, wrap: breaks(func(c *calls) {
			var mine uids
			c.create = func(ctx context.Context, pod *corev1.Pod) error {
				mine.add(pod.UID)
				return c.Provider.CreatePod(ctx, pod)
			}
			c.list = func(ctx context.Context) ([]*corev1.Pod, error) {
				pods, err := c.Provider.GetPods(ctx)
				return slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return !mine.contains(p.UID) }), err
			}
		})},
		{name: "ends during a restart that nobody learns of", caught: "identity/restart-ended", wrap: breaks(func(c *calls) {
			var ran uids
			c.notify = func(ctx context.Context, notify func(*corev1.Pod)) {
				c.Provider.NotifyPods(ctx, func(p *corev1.Pod) {
					if p.Status.Phase != corev1.PodFailed || ran.contains(p.UID) {
						ran.add(p.UID)
						notify(p)
					}
				})
			}
			c.get = func(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
				p, err := c.Provider.GetPod(ctx, namespace, name)
				if err == nil && p.Status.Phase == corev1.PodFailed && !ran.contains(p.UID) {
					return nil, errdefs.NotFound("it does not run")
				}
				return p, err
			}
		}), also: unstartable},
		{name: "restart counts that fall", caught: "restarts/count-holds", wrap: breaks(func(c *calls) {
			var mu sync.Mutex
			base := map[types.UID]int32{}
			c.get = func(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
				p, err := c.Provider.GetPod(ctx, namespace, name)
				if err != nil {
					return nil, err
				}
				mu.Lock()
				defer mu.Unlock()
				s := &p.Status.ContainerStatuses[0]
				if _, ok := base[p.UID]; !ok {
					base[p.UID] = s.RestartCount
				}
				s.RestartCount -= base[p.UID]
				return p, nil
			}
		})},
		{name: "exit code 0 for an unknown one", caught: "exits/unknown", wrap: breaks(inventing)},
		{name: "a declaration that changes with a restart", caught: "refusals/stable", wrap: func() func(context.Context, *inprocess.Provider) node.PodLifecycleHandler {
			opened := map[context.Context]int{}
			return func(ctx context.Context, p *inprocess.Provider) node.PodLifecycleHandler {
				opened[ctx]++
				d := declares{p, p.Capabilities()}
				if opened[ctx] > 1 {
					d.declared = d.declared.Lacks("the second time", capability.Sidecars)
				}
				return d
			}
		}()},
		{name: "a pod that may run without some fields is refused for them", caught: "refusals/unenforced", wrap: func(_ context.Context, p *inprocess.Provider) node.PodLifecycleHandler {
			return strict{declares{p, p.Capabilities().Accept(capability.OwnMachine()...)}}
		}},
		{name: "a feature that it does not have", caught: "feature HostNetwork", wrap: func(_ context.Context, p *inprocess.Provider) node.PodLifecycleHandler {
			return declares{p, p.Capabilities().Note("", capability.HostNetwork)}
		}},
	}
}

// strict refuses pods with a security context.
type strict struct{ declares }

// CreatePod implements node.PodLifecycleHandler.
func (s strict) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	if pod.Spec.Containers[0].SecurityContext != nil {
		return errdefs.InvalidInput("there is no security here")
	}
	return s.declares.CreatePod(ctx, pod)
}

// sharing makes the provider return pods from its cache without a copy, and write to them later.
func sharing(c *calls) {
	var mu sync.Mutex
	cache := map[types.UID]*corev1.Pod{}
	c.list = func(ctx context.Context) ([]*corev1.Pod, error) {
		pods, err := c.Provider.GetPods(ctx)
		mu.Lock()
		defer mu.Unlock()
		for i, p := range pods {
			if old := cache[p.UID]; old != nil {
				old.Status = p.Status
				pods[i] = old
			}
			cache[p.UID] = pods[i]
		}
		return pods, err
	}
	c.remove = func(ctx context.Context, pod *corev1.Pod) error {
		mu.Lock()
		if p := cache[pod.UID]; p != nil {
			p.Status.Phase, p.Status.Message = corev1.PodUnknown, "stopping"
		}
		mu.Unlock()
		return c.Provider.DeletePod(ctx, pod)
	}
}

// inventing makes the provider report success for a pod that vanished.
func inventing(c *calls) {
	var mu sync.Mutex
	var removed uids
	known := map[types.NamespacedName]*corev1.Pod{}
	c.remove = func(ctx context.Context, pod *corev1.Pod) error {
		removed.add(pod.UID)
		mu.Lock()
		delete(known, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		mu.Unlock()
		return c.Provider.DeletePod(ctx, pod)
	}
	c.get = func(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
		p, err := c.Provider.GetPod(ctx, namespace, name)
		mu.Lock()
		defer mu.Unlock()
		key := types.NamespacedName{Namespace: namespace, Name: name}
		switch {
		case err == nil && p.Status.Phase == corev1.PodRunning && !removed.contains(p.UID):
			known[key] = p.DeepCopy()
		case err == nil:
			delete(known, key)
		case errdefs.IsNotFound(err) && known[key] != nil:
			p = known[key].DeepCopy()
			p.Status.Phase = corev1.PodSucceeded
			for i := range p.Status.ContainerStatuses {
				p.Status.ContainerStatuses[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}
			}
			return p, nil
		}
		return p, err
	}
}
