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

// Identity says which pod an instance at a service is, and which instance of it.
type Identity struct {
	Namespace, Name string
	UID             types.UID
	// ID is the service's name for the instance. Of several of one pod the one that was created first is the pod, and of those the
	// one with the least ID.
	ID        string
	CreatedAt time.Time
}

// Partial is the error of a List that had reasons not to ask for all instances. The round has not failed.
var Partial = errors.New("only some instances were asked for") //nolint:errname,revive,staticcheck // as io.EOF: it is no failure

// Unanswered is the error of a List that is complete but for these pods, about which the service gave no answer. They are not missing, and were not seen.
// True is a pod that was asked for: lists of before that lacked it prove nothing any more. The round has not failed.
type Unanswered map[types.UID]bool

// Error implements error.
func (u Unanswered) Error() string {
	return fmt.Sprintf("the service gave no answer about %d pods", len(u))
}

// Config is what a Cache needs to know of a service whose instances are of type T. List, Identify and Status are required.
type Config[T any] struct {
	// List returns every instance of this node. It is complete or an error: a list that was cut is an error too. With Partial it is
	// what was looked at, and nothing is missed that it lacks. With Unanswered that is so for some pods.
	List func(context.Context) ([]T, error)
	// Changed returns the instances that changed at since or later; more do no harm. Nil is a service without such a request: then
	// every round is a list.
	Changed func(ctx context.Context, since time.Time) ([]T, error)
	// Identify says which pod an instance is. False is an instance that is none of a pod of this node.
	Identify func(T) (Identity, bool)
	// Status is what an instance makes of a pod, which has the status that was told last. It is a pure function, and is called with a lock held.
	Status func(pod *corev1.Pod, instance T) corev1.PodStatus
	// Annotations are those that a pod gets from its instance. Nil: none.
	Annotations func(T) map[string]string
	// Ended reports whether an instance of which the deletion was asked is gone, though lists still have it. Nil: none is.
	Ended func(T) bool
	// Pod returns the pod as the cluster has it, or nil. It is asked when the service tells of a pod that nobody created since the start,
	// until it knows it. Nil, or what returns nil, lets the pod have its name and UID alone until Update.
	Pod func(Identity) *corev1.Pod
	// Had reports whether the cluster has a pod of a name that the service had, by its status. After a start lists are asked for one that Find
	// does not find: an earlier process may have made it just now. Nil: such a pod is found by the lists that are due.
	Had func(namespace, name string) bool
	// Double is called by Run for an instance of a pod that has an earlier one, once a list. Nil: they are left.
	Double func(context.Context, T)

	// Busy is the time between two rounds while a pod starts or stops, Rest at all other times, and Idle while there is no pod.
	// 0 is 2 s, 5 s and 1 min.
	Busy, Rest, Idle time.Duration
	// Soon is how long after Hurry the next round is at the latest; 0 is half of Busy.
	Soon time.Duration
	// Slowest is the longest time between two rounds that failed, unless the service asks for more; 0 is 1 min.
	Slowest time.Duration
	// ListEvery is how often a round is a list where Changed would do; 0 is 5 min.
	ListEvery time.Duration
	// SeenWithin is how long the service may take until its lists have a pod that it accepted; 0 is 2 min.
	SeenWithin time.Duration
	// EarlierWithin is the same for a pod that an earlier process made; 0 is SeenWithin, and less than 0 is a service whose first list has them all.
	EarlierWithin time.Duration
	// LostFor is how long complete lists must lack a pod, besides their number, until it is lost: the service may repeat an answer. 0 is no time.
	LostFor time.Duration
}

// GoneAfter is how many complete lists in a row must lack a pod that was stopped until it is gone.
const GoneAfter = 2

const (
	// roundTime bounds a round, so that a service which never answers is seen to be away. A list of many pages at a slow rate takes minutes.
	roundTime = 10 * time.Minute
	// awayAfter is how many rounds in a row must fail until the service is away.
	awayAfter = 2
	// lostAfter is how many complete lists in a row must lack a pod until it is lost.
	lostAfter = 3
)

// Cache has what the service said of each pod last. Its methods may be called from any goroutine.
type Cache[T any] struct {
	config Config[T]
	wake   chan struct{}
	synced chan struct{} // closed after the first complete list

	order  sync.Mutex // held while reports are sent, so that they come in the order of what happened
	notify func(*corev1.Pod)

	mu       sync.Mutex
	pods     map[types.UID]*entry[T] // guarded by mu
	buried   map[string]bool         // guarded by mu; the IDs of instances that ended and were deleted, while lists have them
	err      error                   // guarded by mu; of the last round
	since    time.Time               // guarded by mu; when rounds began to fail
	failed   int                     // guarded by mu; rounds that failed in a row
	answered time.Time               // guarded by mu; when the last round that did not fail was asked for
	complete time.Time               // guarded by mu; when the last complete list was asked for
	began    time.Time               // guarded by mu; when the first round was
	sought   bool                    // guarded by mu; a pod of an earlier process is to be found by a list
}

// entry is what is known of a pod.
type entry[T any] struct {
	pod      *corev1.Pod // handed out: replaced, never changed, and what it points to neither
	instance T
	id       Identity
	at       time.Time // when what instance says was asked for
	accepted time.Time // when the service had taken it, as far as we know
	known    bool      // instance is what the service said
	shown    bool      // the service has shown it, in a list or as a change
	listed   bool      // a list had it
	missing  int       // complete lists in a row without it
	without  time.Time // when the first of those was asked for
	stopping bool      // the service has accepted its deletion
	doubted  bool      // or said that it does not have it, and lists are to say so
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

// Notify sets what is called with each pod whose status changed. The pod is not to be changed. It is called before Run, and before any pod is there.
func (c *Cache[T]) Notify(f func(*corev1.Pod)) { c.notify = f }

// Accepted adds a pod that the service has taken, with what it said of it. It is reported.
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
	if !e.known || e.id.ID != id.ID { // a list may have told of it before its answer came
		e.instance, e.id, e.at, e.known = instance, id, now, true
	}
	report := c.refresh(e)
	c.mu.Unlock()
	c.tell(report)
	c.Hurry()
}

// Stopping notes that the service has accepted the deletion of a pod: it is there until complete lists lack it, or it has Ended.
func (c *Cache[T]) Stopping(uid types.UID) {
	c.mu.Lock()
	if e := c.pods[uid]; e != nil && (!e.stopping || e.doubted) { // a deletion that is asked for again does not put off the end
		c.stop(e)
		e.doubted = false
		if c.ended(e) {
			c.bury(e)
		}
	}
	c.mu.Unlock()
	c.Hurry()
}

// Doubted notes that the service has said not to have a pod that is to be deleted, which something before the service may have said. The pod is there
// until complete lists lack it, also when its instance has ended.
func (c *Cache[T]) Doubted(uid types.UID) {
	c.mu.Lock()
	if e := c.pods[uid]; e != nil && !e.stopping {
		c.stop(e)
		e.doubted = true
	}
	c.mu.Unlock()
	c.Hurry()
}

// stop notes that a pod is to be deleted: lists of before do not count. c.mu is held.
func (*Cache[T]) stop(e *entry[T]) {
	if !e.stopping {
		e.stopping, e.missing = true, 0
	}
}

// bury removes a pod that lists may go on to have. c.mu is held.
func (c *Cache[T]) bury(e *entry[T]) {
	delete(c.pods, e.id.UID)
	c.buried[e.id.ID] = true
}

// Forget removes a pod that the service has said not to have.
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

// Refresh makes the status of a pod anew: Status depends on more than the service, and that has changed.
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

// setPod takes a pod as the cluster has it. The status is what the service makes of it.
func (e *entry[T]) setPod(pod *corev1.Pod) {
	next := pod.DeepCopy()
	next.Status = e.pod.Status
	e.pod = next
}

// refresh makes the status of a pod anew, and returns the pod if it is another one. c.mu is held.
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
	next := *e.pod // it may have been handed out
	next.Status, next.Annotations = status, annotations
	e.pod = &next
	return e.pod
}

// annotated returns the annotations of a pod with those of its instance, and whether it has these already.
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

// tell reports a pod that changed. c.order is held, c.mu is not.
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

// note takes down whether the service answered what it was asked at that time.
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
