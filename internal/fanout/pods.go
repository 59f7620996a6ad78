// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// resyncSteps is the number of steps of a resync, so that not all nodes process their pods at once.
const resyncSteps = 30

// Pods is one watch of the pods of many nodes. Make one with NewPods.
type Pods struct {
	source cache.ListerWatcher
	resync time.Duration
	views  map[string]*PodView
	order  []*PodView

	synced chan struct{} // closed after the first list
	// mark is an informer without objects that has synced when synced is closed; marked is one of its handlers.
	mark   cache.SharedIndexInformer
	marked cache.ResourceEventHandlerRegistration
	first  bool // owned by the reflector: there was no list yet
	step   int  // owned by the reflector's resync
}

// NewPods returns a watch of the pods of nodes on source. It resends each pod once in every resync period; 0 means never. The caller runs it.
func NewPods(source cache.ListerWatcher, nodes []string, resync time.Duration) *Pods {
	p := &Pods{source: source, resync: resync, views: make(map[string]*PodView, len(nodes)), synced: make(chan struct{}), first: true}
	p.mark = newMark(p.synced)
	p.marked, _ = p.mark.AddEventHandler(cache.ResourceEventHandlerFuncs{}) // AddEventHandler fails only after the end of the informer
	for _, name := range nodes {
		view := newPodView(p)
		p.views[name] = view
		p.order = append(p.order, view)
	}
	return p
}

// View returns the pods of a node as an informer, or nil if the node was not passed to NewPods.
func (p *Pods) View(node string) *PodView { return p.views[node] }

// Run watches until ctx ends, and then returns nil.
func (p *Pods) Run(ctx context.Context) error {
	reflector := cache.NewReflectorWithOptions(p.source, &corev1.Pod{}, (*podRouter)(p), cache.ReflectorOptions{
		Name: "pods of many nodes", ResyncPeriod: p.resync / resyncSteps,
	})
	var marking sync.WaitGroup
	marking.Go(func() { p.mark.RunWithContext(ctx) })
	reflector.RunWithContext(ctx)
	marking.Wait()
	return nil
}

func (p *Pods) hasSynced() bool {
	select {
	case <-p.synced:
		return true
	default:
		return false
	}
}

// podRouter is Pods as the store of the reflector: it passes each pod to the view of its node.
type podRouter Pods

// Add handles an event of the watch.
func (r *podRouter) Add(obj any) error {
	if pod, view := r.viewOf(obj); view != nil {
		view.set(pod)
	}
	return nil
}

// Update handles an event of the watch.
func (r *podRouter) Update(obj any) error { return r.Add(obj) }

// Delete handles an event of the watch.
func (r *podRouter) Delete(obj any) error {
	if pod, view := r.viewOf(obj); view != nil {
		view.remove(pod)
	}
	return nil
}

// Replace handles a list. A known pod that is missing in the list is deleted.
func (r *podRouter) Replace(items []any, _ string) error {
	byView := make(map[*PodView][]*corev1.Pod, len(r.order))
	for _, item := range items {
		if pod, view := r.viewOf(item); view != nil {
			byView[view] = append(byView[view], pod)
		}
	}
	for _, view := range r.order {
		view.replacePods(byView[view], r.first)
	}
	if r.first {
		r.first = false
		close(r.synced)
	}
	return nil
}

// Resync resends the pods of some nodes. After resyncSteps calls, it has resent all pods.
func (r *podRouter) Resync() error {
	for i := r.step; i < len(r.order); i += resyncSteps {
		r.order[i].resendPods()
	}
	r.step = (r.step + 1) % resyncSteps
	return nil
}

func (r *podRouter) viewOf(obj any) (*corev1.Pod, *PodView) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, nil
	}
	view := r.views[pod.Spec.NodeName]
	if view != nil {
		pod.ManagedFields = nil // managed fields are often half of the object, and no code here reads them
	}
	return pod, view
}

// NodeOf returns the node of a pod, or "" if the pod is unknown.
func (p *Pods) NodeOf(namespace, name string) string {
	for node, view := range p.views {
		if _, there, _ := view.store.GetByKey(namespace + "/" + name); there {
			return node
		}
	}
	return ""
}
