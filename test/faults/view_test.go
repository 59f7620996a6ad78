// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// patience is the time limit for every wait. It is generous, because the machine may be busy with other work.
const patience = 3 * time.Minute

// query names objects to watch.
type query struct {
	client              rest.Interface
	resource, namespace string
	name                string // "": all
}

type object interface {
	runtime.Object
	metav1.Object
}

// version is an earlier state of an object.
type version[T object] struct {
	At   time.Time // when it was seen
	Gone bool
	Of   T
}

// view holds the present and past states of some objects in the API server.
type view[T object] struct {
	what string

	mu      sync.Mutex
	now     map[string]T  // guarded by mu; keyed by namespace/name
	past    []version[T]  // guarded by mu
	changed chan struct{} // guarded by mu; closed at the next change
}

// watchAll returns a view that is updated until the end of the test.
func watchAll[T object](t *testing.T, q query, kind T) *view[T] {
	t.Helper()
	v := &view[T]{what: q.resource, now: map[string]T{}, changed: make(chan struct{})}
	selector := fields.Everything()
	if q.name != "" {
		selector = fields.OneTermEqualSelector("metadata.name", q.name)
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(q.client, q.resource, q.namespace, selector),
		ObjectType:    kind,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { v.see(o, false) },
			UpdateFunc: func(_, o any) { v.see(o, false) },
			DeleteFunc: func(o any) { v.see(o, true) },
		},
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() { informer.RunWithContext(ctx) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	synced, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if !cache.WaitForCacheSync(synced.Done(), informer.HasSynced) {
		t.Fatalf("%s could not be listed: %v", q.resource, context.Cause(synced))
	}
	return v
}

func (v *view[T]) see(o any, gone bool) {
	if lost, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = lost.Obj
	}
	one, ok := o.(T)
	if !ok {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	key := one.GetNamespace() + "/" + one.GetName()
	v.now[key] = one
	if gone {
		delete(v.now, key)
	}
	v.past = append(v.past, version[T]{At: time.Now(), Gone: gone, Of: one})
	close(v.changed)
	v.changed = make(chan struct{})
}

// list returns the existing objects, sorted by name.
func (v *view[T]) list() []T {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make([]T, 0, len(v.now))
	for _, one := range v.now {
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b T) int { return compare(a.GetName(), b.GetName()) })
	return out
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// history returns all versions that were seen since the given time.
func (v *view[T]) history(since time.Time) (out []version[T]) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range v.past {
		if !one.At.Before(since) {
			out = append(out, one)
		}
	}
	return out
}

// await returns the objects as soon as done returns true for them.
func (v *view[T]) await(t *testing.T, what string, done func([]T) bool) []T {
	t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		v.mu.Lock()
		changed := v.changed
		v.mu.Unlock()
		now := v.list()
		if done(now) {
			return now
		}
		select {
		case <-changed:
		case <-timeout.C:
			t.Fatalf("wait for %s until %s: it did not happen; at last:\n%s", v.what, what, describe(now))
		}
	}
}

// awaitOne waits until done returns true for the only object of a view.
func (v *view[T]) awaitOne(t *testing.T, what string, done func(T) bool) T {
	t.Helper()
	return v.await(t, what, func(all []T) bool { return len(all) == 1 && done(all[0]) })[0]
}

// describe returns a short description of the objects, for error messages.
func describe[T object](objects []T) (out string) {
	for i, o := range objects {
		if i == 10 {
			return out + fmt.Sprintf("and %d more\n", len(objects)-i)
		}
		out += fmt.Sprintf("%s uid=%s deleted=%v", o.GetName(), o.GetUID(), o.GetDeletionTimestamp() != nil)
		if pod, ok := any(o).(*corev1.Pod); ok {
			out += fmt.Sprintf(" phase=%s reason=%s message=%q", pod.Status.Phase, pod.Status.Reason, pod.Status.Message)
		}
		out += "\n"
	}
	return out
}

// percentile returns the value below which the given part of the values lies.
func percentile(values []time.Duration, part float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*part))]
}
