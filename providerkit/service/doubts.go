// SPDX-License-Identifier: Apache-2.0

package service

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// doubts tracks the pods with possible, unconfirmed instances: a create of this process had no response, or an earlier process may have
// created it.
type doubts struct {
	seenWithin, earlierWithin time.Duration

	mu      sync.Mutex
	asked   map[types.UID]time.Time // guarded by mu; when the create without a response ended
	earlier map[types.UID]bool      // guarded by mu; pods of the cluster at the start of this process
	began   time.Time               // guarded by mu
	listed  bool                    // guarded by mu; earlier is complete
}

// begin records the current pods of the cluster, before the first create of this process. If listed is false,
// the age of a pod decides whether an earlier process may have created it.
func (d *doubts) begin(pods []*corev1.Pod, listed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.began, d.listed, d.earlier = time.Now(), listed, map[types.UID]bool{}
	for _, pod := range pods {
		d.earlier[pod.UID] = true
	}
}

// add records that a create has ended without a response.
func (d *doubts) add(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for other, at := range d.asked {
		if time.Since(at) > 10*d.seenWithin { // there was no further create
			delete(d.asked, other)
		}
	}
	if d.asked == nil {
		d.asked = map[types.UID]time.Time{}
	}
	d.asked[uid] = time.Now()
}

// clear records that the kit knows whether the pod has an instance.
func (d *doubts) clear(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.asked, uid)
	delete(d.earlier, uid)
}

// left returns the time for which an instance of a pod may still appear; 0 if the service already shows every existing instance.
func (d *doubts) left(pod *corev1.Pod) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	var left time.Duration
	if at, ok := d.asked[pod.UID]; ok {
		left = d.seenWithin - time.Since(at)
	}
	if d.isEarlier(pod) {
		left = max(left, d.earlierWithin-time.Since(d.began))
	}
	return max(0, left)
}

// settle records that the service shows no instance of a pod. It ends an expired doubt, because no instance can appear then. It returns the
// time for which an instance may still appear.
func (d *doubts) settle(pod *corev1.Pod) time.Duration {
	left := d.left(pod)
	if left == 0 {
		d.clear(pod.UID)
	}
	return left
}

// open reports whether it is still unknown if the pod has an instance.
func (d *doubts) open(pod *corev1.Pod) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, asked := d.asked[pod.UID]
	return asked || d.isEarlier(pod)
}

// lost returns the time for which an instance may still appear after a create of this process without a response.
func (d *doubts) lost(uid types.UID) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, ok := d.asked[uid]
	if !ok {
		return 0
	}
	return max(0, d.seenWithin-time.Since(at))
}

// isEarlier reports whether an earlier process may have created a pod. The caller holds d.mu.
func (d *doubts) isEarlier(pod *corev1.Pod) bool {
	if d.listed {
		return d.earlier[pod.UID]
	}
	created := pod.CreationTimestamp
	return !created.IsZero() && created.Time.Before(d.began)
}

// unsure reports whether a pod may have an instance that lists lack, so that the kit must call Find: because its create is in doubt, or
// because this process has just started and lists may lack an instance of an earlier process.
func (d *doubts) unsure(uid types.UID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, asked := d.asked[uid]
	return asked || time.Since(d.began) < max(d.seenWithin, d.earlierWithin)
}
