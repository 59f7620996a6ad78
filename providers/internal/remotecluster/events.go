// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
)

// earlyPods limits the number of pods whose events are kept while the pod is not in the watch cache yet, and
// earlyEvents the number of events of each.
const (
	earlyPods   = 100
	earlyEvents = 10
)

// normalQPS and normalBurst limit Normal events, because pods that start together have hundreds of them. Warnings
// are not limited.
const (
	normalQPS   = 5
	normalBurst = 100
)

// remoteEvents copies the events of remote pods to the home cluster. It is the store of a reflector, and keeps
// only the count of each event. It copies events from before the watch only for pods that this process created:
// an earlier process may have copied the others.
type remoteEvents struct {
	of     *Cluster
	normal flowcontrol.PassiveRateLimiter

	mu     sync.Mutex
	listed bool                                     // guarded by mu
	told   map[types.UID]int32                      // guarded by mu; counts, by event
	early  map[types.NamespacedName][]*corev1.Event // guarded by mu; events of pods that are not in the watch cache yet
}

func newEvents(of *Cluster) *remoteEvents {
	return &remoteEvents{
		of: of, normal: flowcontrol.NewTokenBucketPassiveRateLimiter(normalQPS, normalBurst),
		told: map[types.UID]int32{}, early: map[types.NamespacedName][]*corev1.Event{},
	}
}

// saying is an event to copy, and its remote pod.
type saying struct {
	event *corev1.Event
	pod   *corev1.Pod
}

// watchEvents watches events until ctx ends. Without the permission, events are not copied; pods are not
// affected.
func (e *remoteEvents) watchEvents(ctx context.Context) {
	of := e.of.client.CoreV1().Events(e.of.config.Namespace)
	only := func(o *metav1.ListOptions) {
		o.FieldSelector = "involvedObject.kind=Pod"
	}
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			only(&o)
			return of.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			only(&o)
			return of.Watch(ctx, o)
		},
	}, e.of.client)
	cache.NewReflectorWithOptions(lw, &corev1.Event{}, e, cache.ReflectorOptions{}).RunWithContext(ctx)
}

// Add implements cache.ReflectorStore.
func (e *remoteEvents) Add(o any) error {
	e.mu.Lock()
	said := e.recordNews(o.(*corev1.Event))
	e.mu.Unlock()
	e.recordEvents(said)
	return nil
}

// Update implements cache.ReflectorStore.
func (e *remoteEvents) Update(o any) error { return e.Add(o) }

// Delete implements cache.ReflectorStore.
func (e *remoteEvents) Delete(o any) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.told, o.(*corev1.Event).UID)
	return nil
}

// Replace implements cache.ReflectorStore. It copies the events that a broken watch missed.
func (e *remoteEvents) Replace(all []any, _ string) error {
	e.mu.Lock()
	var news []saying
	there := map[types.UID]bool{}
	for _, o := range all {
		event := o.(*corev1.Event)
		there[event.UID] = true
		news = append(news, e.recordNews(event)...)
	}
	if !e.listed {
		e.of.mu.Lock()
		news = slices.DeleteFunc(news, func(s saying) bool { _, uid := homeOf(s.pod); return !e.of.born[uid] })
		e.of.mu.Unlock()
	}
	maps.DeleteFunc(e.told, func(uid types.UID, _ int32) bool { return !there[uid] })
	e.listed = true
	e.mu.Unlock()
	e.recordEvents(news)
	return nil
}

// Resync implements cache.ReflectorStore.
func (*remoteEvents) Resync() error { return nil }

// recordNews records an event, and returns it if it must be copied. The caller holds mu.
func (e *remoteEvents) recordNews(event *corev1.Event) []saying {
	about := event.InvolvedObject
	if !e.of.namespaces.isUsed(about.Namespace) || e.told[event.UID] >= countOf(event) {
		return nil
	}
	pod := e.of.remotePod(about.Namespace, about.Name)
	switch {
	case pod == nil: // the watch of events may be ahead of the watch of pods
		at := types.NamespacedName{Namespace: about.Namespace, Name: about.Name}
		if len(e.early) >= earlyPods {
			clear(e.early) // most likely events of other clients' pods in the same namespace
		}
		others := slices.DeleteFunc(e.early[at], func(o *corev1.Event) bool { return o.UID == event.UID }) // drop an older version
		e.early[at] = append(others[max(0, len(others)-earlyEvents+1):], event)
		return nil
	case about.UID != "" && about.UID != pod.UID:
		return nil
	}
	e.told[event.UID] = countOf(event)
	return []saying{{event, pod}}
}

// repeatEarly copies the events of a pod that arrived before the pod was in the watch cache.
func (e *remoteEvents) repeatEarly(pod *corev1.Pod) {
	at := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	e.mu.Lock()
	early := e.early[at]
	delete(e.early, at)
	var news []saying
	for _, event := range early {
		news = append(news, e.recordNews(event)...)
	}
	e.mu.Unlock()
	e.recordEvents(news)
}

// recordEvents records events of home pods. The recorder aggregates repetitions, and limits the events of a pod.
func (e *remoteEvents) recordEvents(news []saying) {
	for _, n := range news {
		at, uid := homeOf(n.pod)
		home := e.of.homePod(at.Namespace, at.Name)
		if home == nil || home.UID != uid || n.event.Type == corev1.EventTypeNormal && !e.normal.TryAccept() {
			continue
		}
		e.of.config.Recorder.Event(&corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: home.Namespace, Name: home.Name, UID: home.UID, FieldPath: n.event.InvolvedObject.FieldPath,
		}, n.event.Type, n.event.Reason, "in the remote cluster: "+n.event.Message)
	}
}

// countOf returns the number of occurrences of an event.
func countOf(event *corev1.Event) int32 {
	count := max(event.Count, 1)
	if event.Series != nil {
		count = max(count, event.Series.Count)
	}
	return count
}
