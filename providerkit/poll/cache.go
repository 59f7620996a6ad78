// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Identity names the pod of an instance, and the instance.
type Identity struct {
	Namespace, Name string
	UID             types.UID
	// ID is the service's name for the instance. If a pod has several instances, the pod is the instance that
	// was created first, and among equal times the instance with the least ID.
	ID        string
	CreatedAt time.Time
}

// Partial is the error of a List that deliberately requested only some instances. The round has not failed.
var Partial = errors.New("only some instances were asked for") //nolint:errname,revive,staticcheck // not a failure, like io.EOF

// Unanswered is the error of a List that is complete except for these pods, for which the service gave no answer. They count neither as
// missing nor as seen. True marks a requested pod: earlier lists without it no longer prove anything. The round has not failed.
type Unanswered map[types.UID]bool

// Error implements error.
func (u Unanswered) Error() string {
	return fmt.Sprintf("the service gave no answer about %d pods", len(u))
}

// Config describes a service with instances of type T. List, Identify and Status are required.
type Config[T any] struct {
	// List returns every instance of this node, or an error; a truncated list is an error, too. With the error
	// Partial, it returns some instances, and no other pod is missing. With Unanswered, that holds for some
	// pods.
	List func(context.Context) ([]T, error)
	// Changed returns the instances changed at since or later, or more. Nil means that the service has no such request, so every round is a
	// list.
	Changed func(ctx context.Context, since time.Time) ([]T, error)
	// Identify returns the pod of an instance. It returns false if the instance belongs to no pod of this node.
	Identify func(T) (Identity, bool)
	// Status returns the status of a pod from its instance. The pod has the last reported status. Status is a pure function, called with a
	// lock of the cache held.
	Status func(pod *corev1.Pod, instance T) corev1.PodStatus
	// Annotations returns the annotations of the pod that come from the instance. It may be nil.
	Annotations func(T) map[string]string
	// Ended reports whether a deleted instance is gone although lists still contain it. It may be nil.
	Ended func(T) bool
	// Pod returns the cluster's pod, or nil. The cache calls it for a reported pod that nobody created since the
	// start, until it returns the pod. Without it, or while it returns nil, the pod has only its name and UID
	// until Update.
	Pod func(Identity) *corev1.Pod
	// Had reports whether the cluster has a pod of a name with a status that shows it at the service. After a
	// start, a pod that Find does not find leads to a list: an earlier process may have just created it. If Had
	// is nil, the regular lists find such a pod.
	Had func(namespace, name string) bool
	// Double is called by Run, once in a list, for a second instance of a pod. If it is nil, such instances
	// stay.
	Double func(context.Context, T)

	// Busy is the time between two rounds while a pod starts or stops, Rest at all other times, and Idle while there is no pod.
	// 0 is 2 s, 5 s and 1 min.
	Busy, Rest, Idle time.Duration
	// Soon is the maximum time between Hurry and the next round; 0 is half of Busy.
	Soon time.Duration
	// Slowest is the longest time between two failed rounds, unless the service asks for more; 0 is 1 min.
	Slowest time.Duration
	// ListEvery is the interval at which a round is a list although Changed would suffice; 0 is 5 min.
	ListEvery time.Duration
	// SeenWithin is the time within which the service's lists contain an accepted pod; 0 is 2 min.
	SeenWithin time.Duration
	// EarlierWithin is the same for a pod of an earlier process; 0 is SeenWithin, and a negative value means that the first list has all
	// pods.
	EarlierWithin time.Duration
	// LostFor is the minimum time for which complete lists must lack a pod until it is lost, in addition to their number, because the
	// service may repeat an answer.
	LostFor time.Duration
}

// GoneAfter is the number of complete lists in a row without a stopped pod after which the pod is gone.
const GoneAfter = 2

const (
	// roundTime bounds a round, so that a service that does not answer counts as unavailable. A list of many pages at a slow rate takes
	// minutes.
	roundTime = 10 * time.Minute
	// awayAfter is the number of failed rounds in a row after which the service counts as unavailable.
	awayAfter = 2
	// lostAfter is the number of complete lists in a row without a pod after which it is lost.
	lostAfter = 3
)

// Cache has the last report of the service about each pod. It is safe for concurrent use.
type Cache[T any] struct {
	config Config[T]
	wake   chan struct{}
	synced chan struct{} // closed after the first complete list

	order  sync.Mutex // held while reports are sent, so that their order is the order of the changes
	notify func(*corev1.Pod)

	mu       sync.Mutex
	pods     map[types.UID]*entry[T] // guarded by mu
	buried   map[string]bool         // guarded by mu; the IDs of ended and deleted instances, while lists have them
	err      error                   // guarded by mu; of the last round
	since    time.Time               // guarded by mu; time of the first failed round in a row
	failed   int                     // guarded by mu; number of failed rounds in a row
	answered time.Time               // guarded by mu; start of the last successful round
	complete time.Time               // guarded by mu; request time of the last complete list
	began    time.Time               // guarded by mu; time of the first round
	sought   bool                    // guarded by mu; a list must find a pod of an earlier process
}

// entry is the known state of a pod.
type entry[T any] struct {
	pod      *corev1.Pod // passed to callers: replaced and never changed, including everything it points to
	instance T
	id       Identity
	at       time.Time // when the request for instance was sent
	accepted time.Time // the known time at which the service accepted the pod
	known    bool      // instance came from the service
	shown    bool      // the service has shown the instance, in a list or as a change
	listed   bool      // a list had the instance
	missing  int       // complete lists in a row without the instance
	without  time.Time // when the first of these lists was requested
	stopping bool      // the service has accepted its deletion
	doubted  bool      // or the service does not know the instance, and lists must still confirm this
}

// New returns a cache without pods. It panics without List, Identify or Status.
func New[T any](c Config[T]) *Cache[T] {
	if c.List == nil || c.Identify == nil || c.Status == nil {
		panic("poll: a Config needs List, Identify and Status")
	}
	c.Busy, c.Rest, c.Idle = cmp.Or(c.Busy, 2*time.Second), cmp.Or(c.Rest, 5*time.Second), cmp.Or(c.Idle, time.Minute)
	c.Soon, c.Slowest = cmp.Or(c.Soon, c.Busy/2), cmp.Or(c.Slowest, time.Minute)
	c.ListEvery, c.SeenWithin = cmp.Or(c.ListEvery, 5*time.Minute), cmp.Or(c.SeenWithin, 2*time.Minute)
	c.EarlierWithin = cmp.Or(c.EarlierWithin, c.SeenWithin)
	return &Cache[T]{
		config: c, wake: make(chan struct{}, 1), synced: make(chan struct{}), notify: func(*corev1.Pod) {},
		pods: map[types.UID]*entry[T]{}, buried: map[string]bool{},
	}
}

// Notify sets the function for pods with a changed status. The function must not change the pod. Call Notify
// before Run, and before the first pod.
func (c *Cache[T]) Notify(f func(*corev1.Pod)) { c.notify = f }

// Accepted adds a created pod with the instance from the service's response, and reports the pod.
func (c *Cache[T]) Accepted(pod *corev1.Pod, instance T) {
	id, _ := c.config.Identify(instance)
	c.order.Lock()
	defer c.order.Unlock()
	c.mu.Lock()
	now := time.Now()
	delete(c.buried, id.ID)
	e := c.pods[pod.UID]
	if e == nil {
		e = &entry[T]{pod: pod, accepted: now}
		c.pods[pod.UID] = e
	}
	e.setPod(pod)
	if !e.known || e.id.ID != id.ID { // a list may have had the instance before the answer to the create came
		e.instance, e.id, e.at, e.known = instance, id, now, true
	}
	report := c.refresh(e)
	c.mu.Unlock()
	c.tell(report)
	c.Hurry()
}

// Stopping records that the service has accepted the deletion of a pod. The pod stays until complete lists lack
// it, or it has Ended.
func (c *Cache[T]) Stopping(uid types.UID) {
	c.mu.Lock()
	if e := c.pods[uid]; e != nil && (!e.stopping || e.doubted) { // a repeated deletion does not delay the end
		c.stop(e)
		e.doubted = false
		if c.ended(e) {
			c.bury(e)
		}
	}
	c.mu.Unlock()
	c.Hurry()
}

// Doubted records that the service returned not-found for a pod that must be deleted. The answer may come from a proxy of the service, so
// the pod stays until complete lists lack it, even if its instance has ended.
func (c *Cache[T]) Doubted(uid types.UID) {
	c.mu.Lock()
	if e := c.pods[uid]; e != nil && !e.stopping {
		c.stop(e)
		e.doubted = true
	}
	c.mu.Unlock()
	c.Hurry()
}

// stop records the deletion of a pod. Earlier lists without it no longer count. The caller holds c.mu.
func (*Cache[T]) stop(e *entry[T]) {
	if !e.stopping {
		e.stopping, e.missing = true, 0
	}
}

// bury removes a pod although lists may still have it. The caller holds c.mu.
func (c *Cache[T]) bury(e *entry[T]) {
	delete(c.pods, e.id.UID)
	c.buried[e.id.ID] = true
}

// Forget removes a pod after the service returned not-found for it.
func (c *Cache[T]) Forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pods, uid)
}

// Update stores the cluster's current version of a pod, and reports whether the service has it.
func (c *Cache[T]) Update(pod *corev1.Pod) bool {
	c.order.Lock()
	defer c.order.Unlock()
	c.mu.Lock()
	e := c.pods[pod.UID]
	if e == nil {
		c.mu.Unlock()
		return false
	}
	e.setPod(pod)
	report := c.refresh(e)
	c.mu.Unlock()
	c.tell(report)
	return true
}

// Refresh computes the status of a pod again, after a change outside of the service.
func (c *Cache[T]) Refresh(uid types.UID) {
	c.order.Lock()
	defer c.order.Unlock()
	c.mu.Lock()
	var report *corev1.Pod
	if e := c.pods[uid]; e != nil {
		report = c.refresh(e)
	}
	c.mu.Unlock()
	c.tell(report)
}

// setPod stores the cluster's pod, with the status from the service.
func (e *entry[T]) setPod(pod *corev1.Pod) {
	next := pod.DeepCopy()
	next.Status = e.pod.Status
	e.pod = next
}

// refresh computes the status of a pod again, and returns the pod if the status has changed. The caller holds c.mu.
func (c *Cache[T]) refresh(e *entry[T]) *corev1.Pod {
	if !e.known {
		return nil
	}
	status := c.config.Status(e.pod, e.instance)
	if status.StartTime == nil {
		status.StartTime = e.pod.Status.StartTime
	}
	if status.StartTime == nil {
		status.StartTime = new(metav1.NewTime(e.accepted))
	}
	annotations, same := c.annotated(e)
	if same && equality.Semantic.DeepEqual(status, e.pod.Status) {
		return nil
	}
	next := *e.pod // callers may hold the old pod
	next.Status, next.Annotations = status, annotations
	e.pod = &next
	return e.pod
}

// annotated returns the annotations of a pod with the annotations of its instance, and whether the pod has these
// already.
func (c *Cache[T]) annotated(e *entry[T]) (all map[string]string, same bool) {
	all, same = e.pod.Annotations, true
	if c.config.Annotations == nil {
		return all, true
	}
	for key, value := range c.config.Annotations(e.instance) {
		if have, has := all[key]; has && have == value {
			continue
		}
		if same {
			all, same = maps.Clone(all), false
		}
		if all == nil {
			all = map[string]string{}
		}
		all[key] = value
	}
	return all, same
}

// tell reports a changed pod. The caller holds c.order, and not c.mu.
func (c *Cache[T]) tell(pod *corev1.Pod) {
	if pod != nil {
		c.notify(pod)
	}
}

func (c *Cache[T]) ended(e *entry[T]) bool {
	return e.stopping && !e.doubted && e.known && c.config.Ended != nil && c.config.Ended(e.instance)
}

// Hurry makes the next round begin soon.
func (c *Cache[T]) Hurry() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// begin records when the service was first asked.
func (c *Cache[T]) begin(asked time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began.IsZero() {
		c.began = asked
	}
}

// note records whether the service answered the request sent at the time asked.
func (c *Cache[T]) note(asked time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.err, c.since, c.failed, c.answered = nil, time.Time{}, 0, asked
	case c.err == nil:
		c.err, c.since, c.failed = err, asked, 1
	default:
		c.err, c.failed = err, c.failed+1
	}
}
