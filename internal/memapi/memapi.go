// SPDX-License-Identifier: Apache-2.0

// Package memapi is the pods of an API server in memory, for tests of
// controllers in fake time.
//
// The guarantee: it deletes gracefully, honours UID preconditions, finalizers
// and the status subresource, and watches as the API server does, which
// client-go's fake does not.
//
// What surprises: it keeps every event, so a watch can begin at any resource
// version unless Compact was called.
package memapi

import (
	"fmt"
	"maps"
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

// API holds pods. Make one with New.
type API struct {
	// Fault is asked before every request; an error is the answer to it.
	Fault func(verb, namespace, name string) error

	mu       sync.Mutex
	revision int64                  // guarded by mu
	pods     map[string]*corev1.Pod // guarded by mu
	events   []event                // guarded by mu; all since oldest
	oldest   int64                  // guarded by mu
	watches  map[*podWatch]bool     // guarded by mu
	writes   []Write                // guarded by mu
}

type event struct {
	revision int64
	kind     watch.EventType
	pod      *corev1.Pod
}

// Write is a request that was to change a pod.
type Write struct {
	Verb, Key string
	UID       types.UID
	Body      string // of a patch
	At        time.Time
}

// String is verb and key.
func (w Write) String() string { return w.Verb + " " + w.Key }

// New returns an API without pods.
func New() *API {
	return &API{pods: map[string]*corev1.Pod{}, watches: map[*podWatch]bool{}}
}

func keyOf(namespace, name string) string { return namespace + "/" + name }

// Writes returns the requests so far that were to change a pod of the key, or
// of any with "".
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
		pod.UID = types.UID(fmt.Sprintf("uid-%d", a.revision+1))
	}
	pod.Generation = 1
	pod.CreationTimestamp = metav1.Time{Time: time.Now().Truncate(time.Second)}
	if pod.Status.Phase == "" {
		pod.Status.Phase = corev1.PodPending
	}
	a.store(watch.Added, key, pod)
	return pod.DeepCopy()
}

// Change lets a user or another controller change a pod. A changed spec raises
// the generation.
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
	a.settle(key, pod)
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
	if err := a.delete(keyOf(namespace, name), opts); err != nil {
		panic(err.Error())
	}
}

// Vanish removes a pod without an event that anybody could see: only a new list tells.
func (a *API) Vanish(namespace, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.revision++
	delete(a.pods, keyOf(namespace, name))
}

// Compact forgets past events and ends every watch with "too old resource
// version", so that watchers have to list anew.
func (a *API) Compact() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.revision++
	a.events, a.oldest = nil, a.revision
	status := apierrors.NewResourceExpired("too old resource version").Status()
	for w := range a.watches {
		w.send(watch.Event{Type: watch.Error, Object: &status})
	}
}

// store writes a pod under a new revision and tells the watches.
func (a *API) store(kind watch.EventType, key string, pod *corev1.Pod) {
	a.revision++
	pod.ResourceVersion = strconv.FormatInt(a.revision, 10)
	if kind == watch.Deleted {
		delete(a.pods, key)
	} else {
		a.pods[key] = pod
	}
	e := event{a.revision, kind, pod}
	a.events = append(a.events, e)
	for w := range a.watches {
		w.send(watch.Event{Type: e.kind, Object: e.pod.DeepCopy()})
	}
}

// settle stores a changed pod, which goes if it is deleted and nothing holds it.
func (a *API) settle(key string, pod *corev1.Pod) {
	if pod.DeletionTimestamp != nil && *pod.DeletionGracePeriodSeconds == 0 && len(pod.Finalizers) == 0 {
		a.store(watch.Deleted, key, pod)
		return
	}
	a.store(watch.Modified, key, pod)
}

// delete follows the rules of graceful deletion of pods.
func (a *API) delete(key string, opts metav1.DeleteOptions) error {
	old := a.pods[key]
	if old == nil {
		return apierrors.NewNotFound(resource, key)
	}
	if p := opts.Preconditions; p != nil && p.UID != nil && *p.UID != old.UID {
		return apierrors.NewConflict(resource, key, fmt.Errorf("UID in precondition: %s, UID in object meta: %s", *p.UID, old.UID))
	}
	pod := old.DeepCopy()
	grace := int64(30)
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		grace = *s
	}
	if opts.GracePeriodSeconds != nil {
		grace = *opts.GracePeriodSeconds
	}
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		grace = 0
	}
	if pod.DeletionTimestamp != nil && grace >= *pod.DeletionGracePeriodSeconds {
		if *pod.DeletionGracePeriodSeconds == 0 {
			a.settle(key, pod)
		}
		return nil
	}
	if pod.DeletionTimestamp == nil {
		pod.Generation++
	}
	pod.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(time.Duration(grace) * time.Second).Truncate(time.Second)}
	pod.DeletionGracePeriodSeconds = &grace
	a.settle(key, pod)
	return nil
}

// applyPatch changes a pod by the status subresource: spec and the rest of the
// metadata stay.
func (a *API) applyPatch(key string, patched *corev1.Pod, uid types.UID) (*corev1.Pod, error) {
	old := a.pods[key]
	if uid != "" && uid != old.UID {
		return nil, apierrors.NewConflict(resource, key, fmt.Errorf("UID in precondition: %s, UID in object meta: %s", uid, old.UID))
	}
	pod := old.DeepCopy()
	pod.Status = patched.Status
	pod.Labels, pod.Annotations = maps.Clone(patched.Labels), maps.Clone(patched.Annotations)
	if equality.Semantic.DeepEqual(pod, old) {
		return pod, nil // as the API server, which writes nothing then
	}
	a.settle(key, pod)
	return pod.DeepCopy(), nil
}
