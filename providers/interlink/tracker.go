// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"cmp"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

const (
	// missingAfter is how many answers in a row must lack a pod until it counts as lost, and goneAfter one that was to stop.
	missingAfter, goneAfter = 3, 2
	// keptFor is how long a published plugin gives the same answer again, whatever it is asked.
	keptFor = 10 * time.Second
	// missingFor is how long answers must lack a pod, too: answers that creates and deletes hurry are of one moment, and so are those that a
	// plugin keeps.
	missingFor = 3 * keptFor
	// unseenFor is how long a plugin may take to tell of a pod that it has accepted.
	unseenFor = 2 * time.Minute
	// forgetAtOnce is of how many pods the server forgets what it remembers before one answer.
	forgetAtOnce = 4
	// soon is how long after a create or a delete the next answer is asked for.
	soon = 250 * time.Millisecond
	// slowest is the longest time between two requests that failed.
	slowest = 10 * time.Second
)

// tracked is a pod that the server has.
type tracked struct {
	pod      *corev1.Pod // as the cluster has it, with the annotation of the job and the last status
	since    time.Time
	seen     bool      // the server has told of it
	missing  int       // answers in a row without it
	without  time.Time // the first of them
	stopping bool      // the server was asked for its stop, and has accepted it or says that it has no such pod
	accepted bool      // it has accepted it
}

// tracker knows what the server said of pods last. What it does not know yet it asks for.
type tracker struct {
	client *client
	every  time.Duration
	wake   chan struct{}
	stuck  bool                   // of poll: the server does not forget
	atHome func(*corev1.Pod) bool // reports whether the cluster still has a pod

	order  sync.Mutex // held while reports are sent, so that they come in the order of what happened
	notify func(*corev1.Pod)

	mu      sync.Mutex
	pods    map[types.UID]*tracked    // guarded by mu
	lacked  map[types.UID]*corev1.Pod // guarded by mu; those that the server should have, and answers lacked: it is asked again
	rotated types.UID                 // guarded by mu; the last pod that the server was told to forget
	turned  types.UID                 // guarded by mu; the last pod that was asked for alone in its turn
	parts   int                       // guarded by mu; requests in a row that the plugin answered in part
}

func newTracker(c *client, every time.Duration) *tracker {
	return &tracker{client: c, every: every, wake: make(chan struct{}, 1), pods: map[types.UID]*tracked{}, lacked: map[types.UID]*corev1.Pod{}, notify: func(*corev1.Pod) {}, atHome: func(*corev1.Pod) bool { return true }}
}

// hurry has the server asked soon.
func (t *tracker) hurry() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// take takes down what the server said of a pod, and reports what is new. t.order is held.
func (t *tracker) take(uid types.UID, said wire.PodStatus) {
	t.mu.Lock()
	k := t.pods[uid]
	if k == nil {
		t.mu.Unlock()
		return
	}
	k.seen, k.missing = true, 0
	said.JobID = cmp.Or(said.JobID, k.pod.Annotations[wire.AnnotationJob]) // not every plugin repeats it
	status := statusOf(k.pod, said, t.client.probes.Load())
	if status.StartTime == nil {
		status.StartTime = k.pod.Status.StartTime
	}
	job := said.JobID
	changed := !equality.Semantic.DeepEqual(status, k.pod.Status) || job != "" && k.pod.Annotations[wire.AnnotationJob] != job
	if changed {
		k.pod = k.pod.DeepCopy() // it may have been handed out
		k.pod.Status = status
		if job != "" {
			metav1.SetMetaDataAnnotation(&k.pod.ObjectMeta, wire.AnnotationJob, job)
		}
	}
	pod := k.pod
	if k.accepted && terminal(status.Phase) {
		defer t.drop(uid)
	}
	t.mu.Unlock()
	if changed {
		t.notify(pod.DeepCopy())
	}
}

// drop forgets a pod.
func (t *tracker) drop(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.pods, uid)
}

// add begins with a pod that the server has, and reports it.
func (t *tracker) add(pod *corev1.Pod, said wire.PodStatus, seen bool) {
	pod = pod.DeepCopy()
	if pod.Status.StartTime == nil {
		now := metav1.Now()
		pod.Status = corev1.PodStatus{StartTime: &now}
	}
	t.order.Lock()
	defer t.order.Unlock()
	t.mu.Lock()
	if t.pods[pod.UID] == nil {
		t.pods[pod.UID] = &tracked{pod: pod, since: time.Now(), seen: seen}
	}
	delete(t.lacked, pod.UID)
	t.mu.Unlock()
	t.take(pod.UID, said)
	t.mu.Lock()
	if k := t.pods[pod.UID]; k != nil {
		k.seen = seen
	}
	t.mu.Unlock()
	t.hurry()
}

// adopt begins with a pod of before. It is not reported: whoever asks gets it, and changes are told from now on.
func (t *tracker) adopt(pod *corev1.Pod, said wire.PodStatus) {
	pod = pod.DeepCopy()
	status := statusOf(pod, said, t.client.probes.Load())
	if status.StartTime == nil {
		status.StartTime = pod.Status.StartTime
	}
	pod.Status = status
	if said.JobID != "" {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, wire.AnnotationJob, said.JobID)
	}
	t.mu.Lock()
	if t.pods[pod.UID] == nil {
		t.pods[pod.UID] = &tracked{pod: pod, since: time.Now(), seen: true}
	}
	delete(t.lacked, pod.UID)
	t.mu.Unlock()
	t.hurry()
}

// keep begins with a pod of before of which nobody tells anything, as the cluster has it.
func (t *tracker) keep(pod *corev1.Pod) {
	t.mu.Lock()
	t.pods[pod.UID] = &tracked{pod: pod.DeepCopy(), since: time.Now(), seen: true}
	t.mu.Unlock()
	t.hurry()
}

// find returns the pod of that name; of several the one that was made last. Nil is none.
func (t *tracker) find(namespace, name string) (found *corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var since time.Time
	for _, k := range t.pods {
		if k.pod.Namespace == namespace && k.pod.Name == name && (found == nil || k.since.After(since)) {
			found, since = k.pod, k.since
		}
	}
	return found
}

// get returns the pod with a UID, nil if there is none.
func (t *tracker) get(uid types.UID) *corev1.Pod {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.pods[uid]; k != nil {
		return k.pod
	}
	return nil
}

// all returns every pod.
func (t *tracker) all() (pods []*corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.pods {
		pods = append(pods, k.pod.DeepCopy())
	}
	return pods
}

// update takes a pod as the cluster has it now, with the images that its job has.
func (t *tracker) update(pod *corev1.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.pods[pod.UID]
	if k == nil {
		return
	}
	next := pod.DeepCopy()
	next.Status = k.pod.Status
	for i := range min(len(next.Spec.Containers), len(k.pod.Spec.Containers)) {
		next.Spec.Containers[i].Image = k.pod.Spec.Containers[i].Image
	}
	for i := range min(len(next.Spec.InitContainers), len(k.pod.Spec.InitContainers)) {
		next.Spec.InitContainers[i].Image = k.pod.Spec.InitContainers[i].Image
	}
	if job := k.pod.Annotations[wire.AnnotationJob]; job != "" {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, wire.AnnotationJob, job)
	}
	k.pod = next
}

// stop notes that the server was asked for the stop of a pod: it has accepted that, or says that it has no such pod, which a proxy says too.
// One that has ended, and whose stop was accepted, is forgotten.
func (t *tracker) stop(uid types.UID, accepted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.pods[uid]; k != nil {
		k.accepted = k.accepted || accepted
		if k.accepted && terminal(k.pod.Status.Phase) {
			delete(t.pods, uid)
			return
		}
		if !k.stopping { // answers of before do not count, and a stop that is asked for again does not put off the end
			k.stopping, k.missing = true, 0
		}
	}
	t.hurry()
}
