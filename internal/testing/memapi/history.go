// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// Actor is the origin of a change.
type Actor string

const (
	// Client is a user of Pods: the controller.
	Client Actor = "client"
	// Test is a caller of a method of the API: users and other controllers.
	Test Actor = "test"
	// Accident is a loss of data by Vanish or Restore, without a request of a client.
	Accident Actor = "accident"
)

// Version is one change of a pod.
type Version struct {
	Revision int64 // goes back with Restore
	Kind     watch.EventType
	At       time.Time
	By       Actor
	// Pod is the pod after the change, or the last state of a deleted pod. It is shared.
	Pod *corev1.Pod

	unseen bool // hidden from all watches
}

// History returns all changes of the pods of the key, or of all pods with "", in their order. Neither Compact
// nor Restore shortens it.
func (a *API) History(key string) (out []Version) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, v := range a.history {
		if key == "" || key == keyOf(v.Pod.Namespace, v.Pod.Name) {
			out = append(out, v)
		}
	}
	return out
}

// Revision returns the current revision of the API.
func (a *API) Revision() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.revision
}

// Vanish removes a pod without a visible event: only a new list shows that.
func (a *API) Vanish(namespace, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := keyOf(namespace, name)
	if pod := a.pods[key]; pod != nil {
		a.revision++
		a.recordChange(Version{Revision: a.revision, Kind: watch.Deleted, By: Accident, Pod: pod, unseen: true})
		delete(a.pods, key)
	}
}

// Compact forgets past events and ends every watch with "too old resource version", so that watchers must list again.
func (a *API) Compact() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.revision++
	a.oldest = a.revision
	status := apierrors.NewResourceExpired("too old resource version").Status()
	for w := range a.watches {
		w.sendEvent(watch.Event{Type: watch.Error, Object: &status})
	}
}

// Lag shows clients the pods as they were at a revision, until CatchUp: the clients are switched to a lagging
// API server. Every watch ends without an event. New watches get no later events, and a list with the version
// "0" is old. A Get, and a List without resource version, are current, because they ask etcd. If all is true,
// they are old as well.
func (a *API) Lag(revision int64, all bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lag = &lag{revision: revision, all: all}
	a.cutWatches()
}

// lag is a lagging API server.
type lag struct {
	revision int64
	all      bool
}

// CatchUp ends Lag; watches get the missed events.
func (a *API) CatchUp() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lag = nil
	for w := range a.watches {
		if w.until < a.revision {
			w.until = a.revision
			w.catchUp()
		}
		w.until = maxRevision
	}
}

// Restore brings back the pods as they were at a revision, as a restored backup of etcd does. Younger pods
// vanish, deleted pods are back, and no watch gets an event. Revisions count on from there: revisions that
// clients remember may come again and mean something else.
func (a *API) Restore(revision int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	pods := a.podsAt(revision)
	for key, pod := range a.pods {
		if pods[key] == nil || pods[key].UID != pod.UID {
			a.addVersion(Version{Revision: revision, Kind: watch.Deleted, At: time.Now(), By: Accident, Pod: pod})
		}
	}
	for key, pod := range pods {
		switch old := a.pods[key]; {
		case old == nil || old.UID != pod.UID:
			a.addVersion(Version{Revision: revision, Kind: watch.Added, At: time.Now(), By: Accident, Pod: pod})
		case old.ResourceVersion != pod.ResourceVersion:
			a.addVersion(Version{Revision: revision, Kind: watch.Modified, At: time.Now(), By: Accident, Pod: pod})
		}
	}
	for i, e := range a.events {
		if e.Revision > revision {
			a.events = a.events[:i:i]
			break
		}
	}
	a.pods, a.revision, a.oldest = pods, revision, min(a.oldest, revision)
	a.cutWatches()
}

// podsAt returns the pods at a revision.
func (a *API) podsAt(revision int64) map[string]*corev1.Pod {
	pods := map[string]*corev1.Pod{}
	for _, e := range a.events {
		key := keyOf(e.Pod.Namespace, e.Pod.Name)
		switch {
		case e.Revision > revision:
			return pods
		case e.Kind == watch.Deleted:
			delete(pods, key)
		default:
			pods[key] = e.Pod
		}
	}
	return pods
}

// addVersion adds to the history.
func (a *API) addVersion(v Version) {
	a.history = append(a.history, v)
	if a.Witness != nil {
		a.Witness(v)
	}
}

// recordChange adds a change to the history.
func (a *API) recordChange(v Version) {
	v.At = time.Now()
	a.addVersion(v)
	a.events = append(a.events, v)
	for w := range a.watches {
		w.offerVersion(v)
	}
}
