// SPDX-License-Identifier: Apache-2.0

// Package memapi is the pods of an API server in memory, for tests of controllers in fake time.
//
// The guarantee: it deletes gracefully, honours UID preconditions, finalizers and the status subresource, and
// watches as the API server does, which client-go's fake does not. test/faults compares it with a real one.
//
// Note: a watch can begin at any resource version unless Compact was called. The defaults of a spec are
// not filled in.
package memapi

import (
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

var resource = schema.GroupResource{Resource: "pods"}

// API holds pods. Create one with New. Set the functions before its use, and may be called from any goroutine.
type API struct {
	// Fault is called before every request; an error is the answer to the request, and the request has no effect
	// then.
	Fault func(verb, namespace, name string) error
	// Lost is called after every completed request. If it returns an error, the client gets that error instead of the answer, such as a
	// timeout. The request still takes effect.
	Lost func(verb, namespace, name string) error
	// Witness receives every change in order. It must not call back.
	Witness func(Version)

	mu       sync.Mutex
	revision int64                  // guarded by mu
	pods     map[string]*corev1.Pod // guarded by mu
	events   []Version              // guarded by mu; all changes that led to pods
	oldest   int64                  // guarded by mu; no watch may begin before
	history  []Version              // guarded by mu
	watches  map[*podWatch]bool     // guarded by mu
	writes   []Write                // guarded by mu
	lag      *lag                   // guarded by mu; nil: none
	created  int                    // guarded by mu; number of generated UIDs
}

const maxRevision = math.MaxInt64

// Write is a request to change a pod.
type Write struct {
	Verb, Key string
	UID       types.UID
	Body      string // of a patch
	At        time.Time
}

// String returns verb and key.
func (w Write) String() string { return w.Verb + " " + w.Key }

// New returns an API without pods.
func New() *API {
	return &API{pods: map[string]*corev1.Pod{}, watches: map[*podWatch]bool{}}
}

func keyOf(namespace, name string) string { return namespace + "/" + name }

// Writes returns the requests so far to change a pod of the key, or any pod with "".
func (a *API) Writes(key string) (out []Write) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.writes {
		if key == "" || w.Key == key {
			out = append(out, w)
		}
	}
	return out
}

// Pod returns a copy of a pod, nil if there is none.
func (a *API) Pod(namespace, name string) *corev1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pods[keyOf(namespace, name)].DeepCopy()
}

// Len returns the number of pods.
func (a *API) Len() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.pods)
}

// Create adds a pod as a user does. An empty UID is filled in.
func (a *API) Create(pod *corev1.Pod) *corev1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := keyOf(pod.Namespace, pod.Name)
	if a.pods[key] != nil {
		panic(fmt.Sprintf("pod %s exists already", key))
	}
	pod = pod.DeepCopy()
	if pod.UID == "" {
		a.created++
		pod.UID = types.UID(fmt.Sprintf("uid-%d", a.created))
	}
	pod.Generation = 1
	pod.CreationTimestamp = metav1.Time{Time: time.Now().Truncate(time.Second)}
	if pod.Status.Phase == "" {
		pod.Status.Phase = corev1.PodPending
	}
	a.storePod(Test, watch.Added, pod)
	return pod.DeepCopy()
}

// Change changes a pod as a user or another controller does. A changed spec raises the generation.
func (a *API) Change(namespace, name string, change func(*corev1.Pod)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := keyOf(namespace, name)
	old := a.pods[key]
	if old == nil {
		panic(fmt.Sprintf("pod %s does not exist", key))
	}
	pod := old.DeepCopy()
	change(pod)
	if !equality.Semantic.DeepEqual(pod.Spec, old.Spec) {
		pod.Generation++
	}
	a.settlePod(Test, old, pod)
}

// Delete deletes a pod as a user does, with a grace period in seconds, or with
// the pod's own if it is negative.
func (a *API) Delete(namespace, name string, grace int64) {
	opts := metav1.DeleteOptions{}
	if grace >= 0 {
		opts.GracePeriodSeconds = &grace
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.deletePod(Test, keyOf(namespace, name), opts); err != nil {
		panic(err.Error())
	}
}

// storePod writes a pod with a new revision and notifies the watches.
func (a *API) storePod(by Actor, kind watch.EventType, pod *corev1.Pod) {
	a.revision++
	pod.ResourceVersion = strconv.FormatInt(a.revision, 10)
	if key := keyOf(pod.Namespace, pod.Name); kind == watch.Deleted {
		delete(a.pods, key)
	} else {
		a.pods[key] = pod
	}
	a.recordChange(Version{Revision: a.revision, Kind: kind, By: by, Pod: pod})
}

// settlePod stores a changed pod, or removes it if it is deleted and nothing holds it any longer.
func (a *API) settlePod(by Actor, old, pod *corev1.Pod) {
	if pod.DeletionTimestamp != nil && *pod.DeletionGracePeriodSeconds == 0 && len(pod.Finalizers) == 0 {
		a.storePod(by, watch.Deleted, old.DeepCopy()) // the last state of the pod
		return
	}
	a.storePod(by, watch.Modified, pod)
}

// deletePod follows the rules of graceful deletion of pods.
func (a *API) deletePod(by Actor, key string, opts metav1.DeleteOptions) error {
	old := a.pods[key]
	if old == nil {
		return apierrors.NewNotFound(resource, key)
	}
	if p := opts.Preconditions; p != nil && p.UID != nil && *p.UID != old.UID {
		return apierrors.NewConflict(resource, key, fmt.Errorf("UID in precondition: %s, UID in object meta: %s", *p.UID, old.UID))
	}
	pod := old.DeepCopy()
	if pod.DeletionTimestamp == nil {
		grace := graceOf(pod, opts)
		pod.Generation++
		pod.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(time.Duration(grace) * time.Second).Truncate(time.Second)}
		pod.DeletionGracePeriodSeconds = &grace
	} else {
		pending := *pod.DeletionGracePeriodSeconds
		if shorter := opts.GracePeriodSeconds; pending == 0 || shorter == nil || *shorter >= pending {
			return nil // the deletion has begun; its grace period can only be shortened
		}
		grace := *opts.GracePeriodSeconds
		end, now := pod.DeletionTimestamp.Add(time.Duration(grace-pending)*time.Second), time.Now()
		if end.Before(now) { // the deletion time cannot be in the past
			end, grace = now.Truncate(time.Second), min(grace, 1)
		}
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: end}, &grace
	}
	a.storePod(by, watch.Modified, pod) // also before an immediate deletion
	if *pod.DeletionGracePeriodSeconds == 0 && len(pod.Finalizers) == 0 {
		a.storePod(by, watch.Deleted, pod.DeepCopy())
	}
	return nil
}

// graceOf returns the grace period of a first deletion, in seconds.
func graceOf(pod *corev1.Pod, opts metav1.DeleteOptions) int64 {
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	switch {
	case ended || pod.Spec.NodeName == "":
		return 0
	case opts.GracePeriodSeconds != nil:
		return *opts.GracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		return *pod.Spec.TerminationGracePeriodSeconds
	}
	return corev1.DefaultTerminationGracePeriodSeconds
}
