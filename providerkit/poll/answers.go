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

// Wait returns when the first complete list has come: what the service has from before a restart is known then. Else it is why not.
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

// Synced reports whether the first complete list has come.
func (c *Cache[T]) Synced() bool {
	select {
	case <-c.synced:
		return true
	default:
		return false
	}
}

// Complete reports whether the service does not have what is not known here: the last round did not fail, and a list is so late
// after the first round that it has all that an earlier process made.
func (c *Cache[T]) Complete() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil && c.settled(c.complete)
}

// settled reports whether a list that is asked for at that time has all that an earlier process made. c.mu is held.
func (c *Cache[T]) settled(asked time.Time) bool {
	return !c.began.IsZero() && !asked.Before(c.began.Add(c.config.EarlierWithin))
}

// LastError returns why the last round failed, and since when rounds do. Nil: it did not.
func (c *Cache[T]) LastError() (err error, since time.Time) { //nolint:revive,staticcheck // the time is of the error
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err, c.since
}

// Away returns why the service is taken to be away: several rounds in a row failed. One that failed is asked again soon, and makes
// no node not ready. The error says since when; nil is a service that answers.
func (c *Cache[T]) Away() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed < awayAfter {
		return nil
	}
	return fmt.Errorf("since %s: %w", c.since.UTC().Format("15:04:05 MST"), c.err)
}

// Get returns a pod of a UID with the instance that it is. False is one that the service does not have, as far as is known.
func (c *Cache[T]) Get(uid types.UID) (pod *corev1.Pod, instance T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.pods[uid]
	if e == nil {
		return nil, instance, false
	}
	return e.pod, e.instance, true
}

// Unshown reports whether the service has accepted a pod, has not shown it yet, and is within its time to do so. It is false for a pod that is not known.
func (c *Cache[T]) Unshown(uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.pods[uid]
	return e != nil && !e.shown && time.Since(e.accepted) < c.config.SeenWithin
}

// Find returns the pod of a name with the instance that it is; of several one that does not stop, and of those the one that came last. An error is of the kind not-found.
func (c *Cache[T]) Find(namespace, name string) (pod *corev1.Pod, instance T, err error) {
	if pod, instance, ok := c.find(namespace, name); ok {
		return pod, instance, nil
	}
	if c.config.Had != nil && c.config.Had(namespace, name) && c.seek() {
		c.Hurry()
	}
	return nil, instance, errdefs.NotFoundf("there is no pod %s/%s at the service", namespace, name)
}

// seek asks for a list that may have a pod of an earlier process, and reports whether there is to be one at once.
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

// Known is a pod of which the service has told.
type Known[T any] struct {
	Pod      *corev1.Pod // not to be changed
	Instance T
	Stopping bool // it is to be deleted
	Missing  int  // complete lists in a row have lacked it
}

// Known returns every pod with its instance, for a service that is asked about pods and has no list.
func (c *Cache[T]) Known() []Known[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Known[T], 0, len(c.pods))
	for _, e := range c.pods {
		all = append(all, Known[T]{e.pod, e.instance, e.stopping, e.missing})
	}
	return all
}

// All returns every pod. They are not to be changed.
func (c *Cache[T]) All() []*corev1.Pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	pods := make([]*corev1.Pod, 0, len(c.pods))
	for _, e := range c.pods {
		pods = append(pods, e.pod)
	}
	return pods
}
