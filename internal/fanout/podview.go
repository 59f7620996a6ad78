// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"errors"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// PodView has the pods of one node, as an informer.
type PodView struct {
	all   *Pods
	store cache.Indexer // written under mu only

	mu       sync.Mutex
	handlers []*registration // guarded by mu, as are the calls of all handlers
}

func newPodView(all *Pods) *PodView {
	return &PodView{all: all, store: cache.NewIndexer(cache.MetaNamespaceKeyFunc,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
}

// Informer returns the pods as a shared informer. It runs with Pods.
func (v *PodView) Informer() cache.SharedIndexInformer {
	return podInformer{v.all.mark, v}
}

// Lister returns a lister of the pods.
func (v *PodView) Lister() corev1listers.PodLister { return corev1listers.NewPodLister(v.store) }

// set stores the current state of a pod.
func (v *PodView) set(pod *corev1.Pod) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.setLocked(pod, false)
}

func (v *PodView) setLocked(pod *corev1.Pod, first bool) {
	before, known, _ := v.store.Get(pod)
	_ = v.store.Update(pod) // Update fails only for an object without metadata
	for _, h := range v.handlers {
		if known {
			h.handler.OnUpdate(before, pod)
		} else {
			h.handler.OnAdd(pod, first)
		}
	}
}

// remove removes a pod, and passes its last state to the handlers.
func (v *PodView) remove(pod *corev1.Pod) {
	v.mu.Lock()
	defer v.mu.Unlock()
	_ = v.store.Delete(pod)
	for _, h := range v.handlers {
		h.handler.OnDelete(pod)
	}
}

// replacePods applies a complete list of pods, and notifies handlers only of changes.
func (v *PodView) replacePods(pods []*corev1.Pod, first bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	there := make(map[string]bool, len(pods))
	for _, pod := range pods {
		key := keyOf(pod)
		there[key] = true
		before, known, _ := v.store.GetByKey(key)
		if known && isSamePod(before.(*corev1.Pod), pod) {
			continue
		}
		v.setLocked(pod, first)
	}
	for _, key := range v.store.ListKeys() {
		if there[key] {
			continue
		}
		last, _, _ := v.store.GetByKey(key)
		_ = v.store.Delete(last)
		for _, h := range v.handlers {
			h.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: key, Obj: last})
		}
	}
}

// resendPods sends every pod to the handlers as an update without a change.
func (v *PodView) resendPods() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.handlers) == 0 {
		return
	}
	for _, pod := range v.store.List() {
		for _, h := range v.handlers {
			h.handler.OnUpdate(pod, pod)
		}
	}
}

// add registers a handler and sends it all existing pods.
func (v *PodView) add(handler cache.ResourceEventHandler) *registration {
	v.mu.Lock()
	defer v.mu.Unlock()
	r := &registration{v.all.marked, v, handler}
	v.handlers = append(v.handlers, r)
	for _, pod := range v.store.List() {
		handler.OnAdd(pod, true)
	}
	return r
}

func (v *PodView) dropHandler(handle cache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registration)
	if !ok || r.view != v {
		return errors.New("remove event handler: it belongs to another informer")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.handlers = slices.DeleteFunc(v.handlers, func(h *registration) bool { return h == r })
	return nil
}

// registration is a handler of a view. The handler gets the existing pods at registration, so it has synced if the view has synced. Pods.marked
// implements the methods of newer client-go versions.
type registration struct {
	cache.ResourceEventHandlerRegistration
	view    *PodView
	handler cache.ResourceEventHandler
}

// HasSynced reports whether the first list was delivered.
func (r *registration) HasSynced() bool { return r.view.all.hasSynced() }

func keyOf(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

func isSamePod(a, b *corev1.Pod) bool {
	return a.UID == b.UID && a.ResourceVersion == b.ResourceVersion && a.ResourceVersion != ""
}
