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

// Partial is the error of a List with a reason to request some instances only. The round has not failed.
var Partial = errors.New("only some instances were asked for") //nolint:errname,revive,staticcheck // not a failure, like io.EOF

// Unanswered is the error of a List that is complete except for these pods, for which the service gave no
// answer. They are neither missing nor seen. True marks a requested pod: earlier lists without it prove nothing
// any more. The round has not failed.
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
	// Changed returns the instances changed at since or later; more instances do no harm. Nil is a service
	// without such a request: then every round is a list.
	Changed func(ctx context.Context, since time.Time) ([]T, error)
	// Identify returns the pod of an instance. False means that the instance belongs to no pod of this node.
	Identify func(T) (Identity, bool)
	// Status returns the status of a pod from its instance. The pod has the last reported status. Status is a
	// pure function; the cache holds a lock meanwhile.
	Status func(pod *corev1.Pod, instance T) corev1.PodStatus
	// Annotations returns the annotations that an instance gives its pod. It may be nil.
	Annotations func(T) map[string]string
	// Ended reports whether a deleted instance is gone although lists still have it. It may be nil.
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
	// Soon is how long after Hurry the next round is at the latest; 0 is half of Busy.
	Soon time.Duration
	// Slowest is the longest time between two failed rounds, unless the service asks for more; 0 is 1 min.
	Slowest time.Duration
	// ListEvery is how often a round is a list where Changed would do; 0 is 5 min.
	ListEvery time.Duration
	// SeenWithin is the longest time until the service's lists have an accepted pod; 0 is 2 min.
	SeenWithin time.Duration
	// EarlierWithin is the same for a pod of an earlier process; 0 is SeenWithin, and a negative value is a
	// service whose first list has all pods.
	EarlierWithin time.Duration
	// LostFor is how long complete lists must lack a pod, besides their number, until it is lost: the service may repeat an answer. 0 is no time.
	LostFor time.Duration
}

// GoneAfter is the number of complete lists in a row without a stopped pod after which the pod is gone.
const GoneAfter = 2

const (
	// roundTime bounds a round, so that a service without answers counts as away. A list of many pages at a slow
	// rate takes minutes.
	roundTime = 10 * time.Minute
	// awayAfter is how many rounds in a row must fail until the service is away.
	awayAfter = 2
	// lostAfter is how many complete lists in a row must lack a pod until it is lost.
	lostAfter = 3
)

// Cache has the last report of the service about each pod. Its methods may be called from any goroutine.
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
	since    time.Time               // guarded by mu; when rounds began to fail
	failed   int                     // guarded by mu; rounds that failed in a row
	answered time.Time               // guarded by mu; when the last successful round began
	complete time.Time               // guarded by mu; when the last complete list was asked for
	began    time.Time               // guarded by mu; when the first round was
	sought   bool                    // guarded by mu; a list must find a pod of an earlier process
}

// entry is the known state of a pod.
type entry[T any] struct {
	pod      *corev1.Pod // handed out: replaced and never changed, including everything it points to
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
	doubted  bool      // or the service does not know the instance, and lists must confirm this
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

// Accepted adds a pod after its create, with the service's answer, and reports the pod.
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

// Doubted records that the service has denied a pod that is to be deleted. A proxy of the service may have said
// so. The pod stays until complete lists lack it, also when its instance has ended.
func (c *Cache[T]) Doubted(uid types.UID) {
	c.mu.Lock()
	if e := c.pods[uid]; e != nil && !e.stopping {
		c.stop(e)
		e.doubted = true
	}
	c.mu.Unlock()
	c.Hurry()
}

// stop records the deletion of a pod: earlier lists do not count. The caller holds c.mu.
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

// Forget removes a pod after the service has denied it.
func (c *Cache[T]) Forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pods, uid)
}

// Update takes a pod as the cluster has it now, and reports whether the service has it.
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

// setPod takes the cluster's pod, with the status from the service.
func (e *entry[T]) setPod(pod *corev1.Pod) {
	next := pod.DeepCopy()
	next.Status = e.pod.Status
	e.pod = next
}

// refresh computes the status of a pod anew, and returns the pod if the status has changed. The caller holds
// c.mu.
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
	next := *e.pod // the old pod may have been handed out
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

// Hurry lets the next round begin soon.
func (c *Cache[T]) Hurry() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// begin notes when the service was asked first.
func (c *Cache[T]) begin(asked time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began.IsZero() {
		c.began = asked
	}
}

// note records whether the service answered the request of that time.
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
