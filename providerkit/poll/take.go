// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// Take records the states of some instances, pushed by the service or requested at the time asked.
func (c *Cache[T]) Take(ctx context.Context, asked time.Time, instances ...T) {
	c.apply(ctx, instances, asked, false, nil)
}

// TakeAll records a complete list that was requested at the time asked, outside of a round, from a service that pushes changes.
func (c *Cache[T]) TakeAll(ctx context.Context, asked time.Time, instances []T) {
	c.begin(asked)
	c.apply(ctx, instances, asked, true, nil)
}

// Fails records the error if a service without rounds does not report its changes; nil means that it does. Each call with an error counts
// as a failed round.
func (c *Cache[T]) Fails(err error) { c.note(time.Now(), err) }

// due returns the request of the next round: a complete list, or the changes since a time.
func (c *Cache[T]) due(now time.Time) (since time.Time, list bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.config.Changed == nil || c.complete.IsZero() || now.Sub(c.complete) >= c.config.ListEvery {
		return time.Time{}, true
	}
	if now.Sub(c.complete) < 2*c.config.Rest {
		return c.answered, false
	}
	if c.sought || c.settled(now) && !c.settled(c.complete) {
		return time.Time{}, true
	}
	for _, e := range c.pods { // only complete lists show the end of these pods, so complete lists are more frequent, but not in each round
		if e.stopping || e.missing > 0 || !e.listed && now.Sub(e.accepted) > c.config.SeenWithin {
			return time.Time{}, true
		}
	}
	return c.answered, false
}

// apply records the result of a request sent at the time asked. A complete list is also evidence about the pods that it lacks, except for
// the unanswered pods.
func (c *Cache[T]) apply(ctx context.Context, instances []T, asked time.Time, list bool, unanswered Unanswered) {
	for _, d := range c.applyInOrder(ctx, instances, asked, list, unanswered) { // without a lock, because this calls the service
		c.config.Double(ctx, d)
	}
}

// applyInOrder does the work of apply, and returns the second instances of pods in a list if Double is set.
func (c *Cache[T]) applyInOrder(ctx context.Context, instances []T, asked time.Time, list bool, unanswered Unanswered) (doubles []T) {
	c.order.Lock()
	defer c.order.Unlock()
	there, ids := map[types.UID]bool{}, map[string]bool{}
	c.date(instances)
	for _, instance := range instances {
		id, ours := c.config.Identify(instance)
		if !ours {
			continue
		}
		ids[id.ID] = true
		if c.gone(id.ID) {
			continue
		}
		there[id.UID] = true
		report, double := c.take(id, instance, asked, list)
		if double != nil {
			doubles = append(doubles, *double)
		}
		c.tell(report)
	}
	if !list {
		return nil
	}
	for _, pod := range c.lacking(there, ids, asked, unanswered) {
		log.G(ctx).WithField("pod", pod.Namespace+"/"+pod.Name).WithField("podUID", string(pod.UID)).
			Warn("The service has lost the pod: several complete lists in a row lack it")
	}
	if c.config.Double == nil {
		return nil
	}
	return doubles
}

// take records the report about one instance. It returns the pod if its status changed, and the instance if it
// is a second instance of its pod.
func (c *Cache[T]) take(id Identity, instance T, asked time.Time, list bool) (report *corev1.Pod, double *T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.pods[id.UID]
	switch {
	case e == nil && !list && c.config.Ended != nil && c.config.Ended(instance):
		return nil, nil // the pod is already gone
	case e == nil:
		e = &entry[T]{pod: c.adopted(id), id: id, accepted: id.CreatedAt}
		if e.accepted.IsZero() {
			e.accepted = asked
		}
		c.pods[id.UID] = e
	case e.known && e.id.ID != id.ID && !before(id, e.id):
		return nil, &instance
	case e.known && e.id.ID != id.ID:
		other := e.instance
		double, e.at = &other, time.Time{}
	}
	if len(e.pod.Spec.Containers) == 0 { // the cluster's pods may be known later than the first list
		if pod := c.inCluster(id); pod != nil {
			e.setPod(pod)
		}
	}
	e.shown = true
	if list {
		e.listed, e.missing = true, 0
	}
	if asked.Before(e.at) {
		return nil, double
	}
	e.id, e.instance, e.known, e.at = id, instance, true, asked
	report = c.refresh(e)
	if c.ended(e) {
		c.bury(e)
	}
	return report, double
}

// gone reports whether an instance has ended and was deleted, even if the service still reports it.
func (c *Cache[T]) gone(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buried[id]
}

// date records the creation times of accepted instances if the response to the create lacked them.
func (c *Cache[T]) date(instances []T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, instance := range instances {
		id, ours := c.config.Identify(instance)
		if e := c.pods[id.UID]; ours && e != nil && e.id.ID == id.ID && e.id.CreatedAt.IsZero() {
			e.id.CreatedAt = id.CreatedAt
		}
	}
}

// before reports whether an instance takes precedence over another instance of its pod. An instance with an
// unknown creation time is not the earlier instance.
func before(a, b Identity) bool {
	if a.CreatedAt.IsZero() != b.CreatedAt.IsZero() {
		return b.CreatedAt.IsZero()
	}
	if !a.CreatedAt.Equal(b.CreatedAt) {
		return a.CreatedAt.Before(b.CreatedAt)
	}
	return a.ID < b.ID
}

// adopted returns a pod from before a restart.
func (c *Cache[T]) adopted(id Identity) *corev1.Pod {
	if pod := c.inCluster(id); pod != nil {
		return pod
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: id.Namespace, Name: id.Name, UID: id.UID}}
}

// inCluster returns the cluster's pod, or nil if the cluster does not have it or not yet.
func (c *Cache[T]) inCluster(id Identity) *corev1.Pod {
	if c.config.Pod == nil {
		return nil
	}
	if pod := c.config.Pod(id); pod != nil && pod.UID == id.UID {
		return pod
	}
	return nil
}

// lacking counts the pods that a complete list lacks. It removes pods that are gone, and returns lost pods.
func (c *Cache[T]) lacking(there map[types.UID]bool, ids map[string]bool, asked time.Time, unanswered Unanswered) (lost []*corev1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, e := range c.pods {
		if anew, un := unanswered[uid]; un {
			if anew {
				e.missing = 0
			}
			continue
		}
		if there[uid] || e.at.After(asked) || !asked.After(e.accepted) {
			continue
		}
		if e.missing++; e.missing == 1 {
			e.without = asked
		}
		switch {
		case e.stopping && e.missing >= GoneAfter:
			delete(c.pods, uid)
		case !e.stopping && e.missing >= lostAfter && asked.Sub(e.without) >= c.config.LostFor && (e.listed || asked.Sub(e.accepted) > c.config.SeenWithin):
			lost = append(lost, e.pod)
			delete(c.pods, uid)
		}
	}
	for id := range c.buried {
		if !ids[id] {
			delete(c.buried, id)
		}
	}
	if c.complete.IsZero() {
		close(c.synced)
	}
	c.complete, c.sought = asked, false
	return lost
}
