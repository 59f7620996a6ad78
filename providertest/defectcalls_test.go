// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

// calls replaces some methods of the provider. Methods whose function is nil are unchanged.
type calls struct {
	*inprocess.Provider
	create func(context.Context, *corev1.Pod) error
	update func(context.Context, *corev1.Pod) error
	remove func(context.Context, *corev1.Pod) error
	get    func(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	status func(ctx context.Context, namespace, name string) (*corev1.PodStatus, error)
	list   func(context.Context) ([]*corev1.Pod, error)
	ping   func(context.Context) error
	notify func(context.Context, func(*corev1.Pod))
}

func (c *calls) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	if c.create != nil {
		return c.create(ctx, pod)
	}
	return c.Provider.CreatePod(ctx, pod)
}

func (c *calls) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	if c.update != nil {
		return c.update(ctx, pod)
	}
	return c.Provider.UpdatePod(ctx, pod)
}

func (c *calls) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	if c.remove != nil {
		return c.remove(ctx, pod)
	}
	return c.Provider.DeletePod(ctx, pod)
}

func (c *calls) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	if c.get != nil {
		return c.get(ctx, namespace, name)
	}
	return c.Provider.GetPod(ctx, namespace, name)
}

func (c *calls) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	if c.status != nil {
		return c.status(ctx, namespace, name)
	}
	return c.Provider.GetPodStatus(ctx, namespace, name)
}

func (c *calls) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	if c.list != nil {
		return c.list(ctx)
	}
	return c.Provider.GetPods(ctx)
}

func (c *calls) Ping(ctx context.Context) error {
	if c.ping != nil {
		return c.ping(ctx)
	}
	return c.Provider.Ping(ctx)
}

func (c *calls) NotifyPods(ctx context.Context, notify func(*corev1.Pod)) {
	if c.notify != nil {
		c.notify(ctx, notify)
		return
	}
	c.Provider.NotifyPods(ctx, notify)
}

// breaks returns a wrapper in which change replaces methods of the provider.
func breaks(change func(c *calls)) func(context.Context, *inprocess.Provider) node.PodLifecycleHandler {
	return func(_ context.Context, p *inprocess.Provider) node.PodLifecycleHandler {
		c := &calls{Provider: p}
		change(c)
		return c
	}
}

// graced returns the pod with a changed grace period for its deletion.
func graced(pod *corev1.Pod, change func(int64) int64) *corev1.Pod {
	pod = pod.DeepCopy()
	g := change(*pod.DeletionGracePeriodSeconds)
	pod.DeletionGracePeriodSeconds = &g
	return pod
}

// uids is a set of UIDs.
type uids struct {
	mu  sync.Mutex
	has map[types.UID]bool
}

// add adds a UID and reports whether it was there.
func (u *uids) add(uid types.UID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.has == nil {
		u.has = map[types.UID]bool{}
	}
	was := u.has[uid]
	u.has[uid] = true
	return was
}

func (u *uids) contains(uid types.UID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.has[uid]
}

func callDefects() []defect {
	return []defect{
		{name: "names instead of UIDs", caught: "identity/delete-other", wrap: breaks(func(c *calls) {
			c.remove = func(ctx context.Context, pod *corev1.Pod) error {
				if there, err := c.Provider.GetPod(ctx, pod.Namespace, pod.Name); err == nil {
					pod.UID = there.UID
				}
				return c.Provider.DeletePod(ctx, pod)
			}
		})},
		{name: "doubled creates", caught: "creation/twice", also: []string{"creation/answer-lost", "lists/stale"}, wrap: breaks(func(c *calls) {
			var seen uids
			c.create = func(ctx context.Context, pod *corev1.Pod) error {
				if seen.add(pod.UID) {
					pod = pod.DeepCopy()
					pod.Name += "-2"
				}
				return c.Provider.CreatePod(ctx, pod)
			}
		})},
		{name: "creates that replace what another daemon made", caught: "identity/restart-create", wrap: breaks(func(c *calls) {
			var seen uids
			c.create = func(ctx context.Context, pod *corev1.Pod) error {
				there, err := c.Provider.GetPod(ctx, pod.Namespace, pod.Name)
				if !seen.add(pod.UID) && err == nil && there.UID == pod.UID {
					now := int64(0)
					old := pod.DeepCopy()
					old.DeletionGracePeriodSeconds = &now
					if err := c.Provider.DeletePod(ctx, old); err != nil {
						return err
					}
					for err == nil {
						_, err = c.Provider.GetPod(ctx, pod.Namespace, pod.Name)
					}
				}
				return c.Provider.CreatePod(ctx, pod)
			}
		})},
		{name: "a throttled create that blames the pod", caught: "lists/create-throttled", wrap: breaks(func(c *calls) {
			c.create = func(ctx context.Context, pod *corev1.Pod) error {
				err := c.Provider.CreatePod(ctx, pod)
				if errors.Is(err, inprocess.ErrThrottled) {
					return errdefs.AsInvalidInput(err)
				}
				return err
			}
		})},
		{name: "a create in an outage that blames the pod", caught: "lists/create-outage", wrap: breaks(func(c *calls) {
			c.create = func(ctx context.Context, pod *corev1.Pod) error {
				err := c.Provider.CreatePod(ctx, pod)
				if errors.Is(err, inprocess.ErrOutage) {
					return errdefs.AsInvalidInput(err)
				}
				return err
			}
		})},
		{name: "a delete in an outage that says not found", caught: "lists/delete-outage", wrap: breaks(func(c *calls) {
			c.remove = func(ctx context.Context, pod *corev1.Pod) error {
				if err := c.Provider.DeletePod(ctx, pod); err != nil {
					return errdefs.AsNotFound(err)
				}
				return nil
			}
		})},
		{name: "a missing pod without a kind in DeletePod", caught: "deletion/absent", also: []string{"identity/restart-in-delete", "identity/restart-deleted"}, wrap: breaks(func(c *calls) {
			c.remove = func(ctx context.Context, pod *corev1.Pod) error {
				if err := c.Provider.DeletePod(ctx, pod); err != nil {
					return errors.New(err.Error())
				}
				return nil
			}
		})},
		{name: "a DeletePod that forgets what still runs", caught: "deletion/confirmed", also: []string{
			"deletion/at-once", "deletion/grace", "deletion/shorter", "hooks/grace", "hooks/pre-stop", "identity/restart-deleted", "identity/restart-in-delete",
		},
			wrap: breaks(forgetting)},
		{name: "a grace period that is cut short", caught: "deletion/grace", also: []string{"hooks/pre-stop"}, wrap: breaks(func(c *calls) {
			c.remove = func(ctx context.Context, pod *corev1.Pod) error {
				return c.Provider.DeletePod(ctx, graced(pod, func(g int64) int64 { return min(g, 1) }))
			}
		})},
		{name: "a grace period of an hour at least", caught: "deletion/grace-ends", also: []string{"deletion/confirmed", "deletion/exit-code", "deletion/grace", "hooks/grace"}, wrap: breaks(func(c *calls) {
			c.remove = func(ctx context.Context, pod *corev1.Pod) error {
				return c.Provider.DeletePod(ctx, graced(pod, func(g int64) int64 {
					if g == 0 {
						return 0
					}
					return max(g, 3600)
				}))
			}
		})},
		{name: "a zero grace period that means the default", caught: "deletion/at-once", wrap: breaks(func(c *calls) {
			c.remove = func(ctx context.Context, pod *corev1.Pod) error {
				return c.Provider.DeletePod(ctx, graced(pod, func(g int64) int64 {
					if g == 0 {
						return 30
					}
					return g
				}))
			}
		})},
		{name: "a second request to stop that is ignored", caught: "deletion/shorter", wrap: breaks(func(c *calls) {
			var asked uids
			c.remove = func(ctx context.Context, pod *corev1.Pod) error {
				if asked.add(pod.UID) {
					if _, err := c.Provider.GetPod(ctx, pod.Namespace, pod.Name); err == nil {
						return nil
					}
				}
				return c.Provider.DeletePod(ctx, pod)
			}
		})},
		{name: "kills in the place of stops", caught: "deletion/exit-code", also: []string{"deletion/grace", "hooks/pre-stop"}, wrap: breaks(func(c *calls) {
			c.remove = func(ctx context.Context, pod *corev1.Pod) error {
				return c.Provider.DeletePod(ctx, graced(pod, func(int64) int64 { return 0 }))
			}
		})},
		{name: "a Ping that is always well", caught: "ping/outage", wrap: breaks(func(c *calls) {
			c.ping = func(context.Context) error { return nil }
		})},
		{name: "a goroutine for each pod that never ends", caught: "resources/goroutines", wrap: func(ctx context.Context, p *inprocess.Provider) node.PodLifecycleHandler {
			return &calls{Provider: p, create: func(c context.Context, pod *corev1.Pod) error {
				go func() { <-ctx.Done() }()
				return p.CreatePod(c, pod)
			}}
		}},
		{name: "a goroutine that outlives the node", caught: "resources/close", wrap: func(ctx context.Context, p *inprocess.Provider) node.PodLifecycleHandler {
			return &calls{Provider: p, notify: func(c context.Context, notify func(*corev1.Pod)) {
				go func() { <-ctx.Done() }()
				p.NotifyPods(c, notify)
			}}
		}},
		{name: "memory that is kept of pods that are gone", caught: "resources/memory", wrap: breaks(func(c *calls) {
			var mu sync.Mutex
			kept := map[types.UID][]byte{}
			c.create = func(ctx context.Context, pod *corev1.Pod) error {
				mu.Lock()
				kept[pod.UID] = make([]byte, 1<<20)
				mu.Unlock()
				return c.Provider.CreatePod(ctx, pod)
			}
		})},
	}
}

// forgetting makes the provider no longer return a running pod after a stop request.
func forgetting(c *calls) {
	var asked uids
	hidden := func(pod *corev1.Pod) bool {
		return asked.contains(pod.UID) && pod.Status.Phase == corev1.PodRunning
	}
	c.remove = func(ctx context.Context, pod *corev1.Pod) error {
		err := c.Provider.DeletePod(ctx, pod)
		if err == nil {
			asked.add(pod.UID)
		}
		return err
	}
	c.get = func(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
		pod, err := c.Provider.GetPod(ctx, namespace, name)
		if err == nil && hidden(pod) {
			return nil, errdefs.NotFound("it was deleted")
		}
		return pod, err
	}
}
