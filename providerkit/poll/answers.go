// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// Wait returns after the first complete list, when the pods from before a restart are known. Its error is the reason why there is no list.
func (c *Cache[T]) Wait(ctx context.Context) error {
	select {
	case <-c.synced:
		return nil
	case <-ctx.Done():
		err, _ := c.LastError()
		if err == nil {
			err = ctx.Err()
		}
		return fmt.Errorf("the pods from before the restart are not known yet: %w", err)
	}
}

// Synced reports whether there was a complete list.
func (c *Cache[T]) Synced() bool {
	select {
	case <-c.synced:
		return true
	default:
		return false
	}
}

// Complete reports whether an unknown pod is certainly not at the service: the last round succeeded, and some list was requested so long
// after the first round that it has every pod of an earlier process.
func (c *Cache[T]) Complete() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil && c.settled(c.complete)
}

// settled reports whether a list requested at that time has every pod of an earlier process. The caller holds
// c.mu.
func (c *Cache[T]) settled(asked time.Time) bool {
	return !c.began.IsZero() && !asked.Before(c.began.Add(c.config.EarlierWithin))
}

// LastError returns the error of the last round, and the time since which rounds fail. Nil: the last round succeeded.
func (c *Cache[T]) LastError() (err error, since time.Time) { //nolint:revive,staticcheck // the time belongs to the error
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err, c.since
}

// Away returns an error if the service counts as unavailable, because several rounds in a row failed. A single failed round is repeated
// soon, and does not make the node NotReady. The error contains the start time; nil means that the service answers.
func (c *Cache[T]) Away() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed < awayAfter {
		return nil
	}
	return fmt.Errorf("since %s: %w", c.since.UTC().Format("15:04:05 MST"), c.err)
}

// Get returns a pod by its UID, with its instance. It returns false if the service is not known to have the pod.
func (c *Cache[T]) Get(uid types.UID) (pod *corev1.Pod, instance T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.pods[uid]
	if e == nil {
		return nil, instance, false
	}
	return e.pod, e.instance, true
}

// Unshown reports whether the service has accepted a pod, has not shown it yet, and still has time to do so. It
// is false for an unknown pod.
func (c *Cache[T]) Unshown(uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.pods[uid]
	return e != nil && !e.shown && time.Since(e.accepted) < c.config.SeenWithin
}

// Find returns the pod of a name, with its instance. Of several pods it prefers a pod that does not stop, and then the newest. The error is
// of the kind not-found.
func (c *Cache[T]) Find(namespace, name string) (pod *corev1.Pod, instance T, err error) {
	if pod, instance, ok := c.find(namespace, name); ok {
		return pod, instance, nil
	}
	if c.config.Had != nil && c.config.Had(namespace, name) && c.seek() {
		c.Hurry()
	}
	return nil, instance, errdefs.NotFoundf("there is no pod %s/%s at the service", namespace, name)
}

// seek requests a list that may have a pod of an earlier process, and reports whether the list is made at once.
func (c *Cache[T]) seek() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sought = c.sought || !c.complete.IsZero() && !c.settled(c.complete)
	return c.sought && time.Since(c.complete) >= 2*c.config.Rest
}

func (c *Cache[T]) find(namespace, name string) (pod *corev1.Pod, instance T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found *entry[T]
	for _, e := range c.pods {
		if e.pod.Namespace == namespace && e.pod.Name == name && (found == nil || found.stopping && !e.stopping ||
			found.stopping == e.stopping && found.accepted.Before(e.accepted)) {
			found = e
		}
	}
	if found == nil {
		return nil, instance, false
	}
	return found.pod, found.instance, true
}

// Known is a pod that the service has reported.
type Known[T any] struct {
	Pod      *corev1.Pod // not to be changed
	Instance T
	Stopping bool // the pod is being deleted
	Missing  int  // number of complete lists in a row without the pod
}

// Known returns every pod with its instance, for a service that answers about single pods and has no list.
func (c *Cache[T]) Known() []Known[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Known[T], 0, len(c.pods))
	for _, e := range c.pods {
		all = append(all, Known[T]{e.pod, e.instance, e.stopping, e.missing})
	}
	return all
}

// All returns every pod. Callers must not change them.
func (c *Cache[T]) All() []*corev1.Pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	pods := make([]*corev1.Pod, 0, len(c.pods))
	for _, e := range c.pods {
		pods = append(pods, e.pod)
	}
	return pods
}
