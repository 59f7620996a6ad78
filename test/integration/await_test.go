// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
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
const patience = 2 * time.Minute

// query names objects to watch.
type query struct {
	client              rest.Interface
	resource, namespace string
	name                string // "": all
}

// await watches the objects until done returns true for them, and returns them.
func await[T interface {
	runtime.Object
	metav1.Object
}](t *testing.T, q query, kind T, what string, done func([]T) bool) []T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	selector := fields.Everything()
	if q.name != "" {
		selector = fields.OneTermEqualSelector("metadata.name", q.name)
	}
	changed := make(chan struct{}, 1)
	mark := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(q.client, q.resource, q.namespace, selector),
		ObjectType:    kind,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { mark() },
			UpdateFunc: func(any, any) { mark() },
			DeleteFunc: func(any) { mark() },
		},
	})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { informer.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatalf("wait until %s: %s could not be listed: %v", what, q.resource, context.Cause(ctx))
	}
	for {
		var objects []T
		for _, o := range store.List() {
			objects = append(objects, o.(T))
		}
		if done(objects) {
			return objects
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("wait until %s: %v; at last:\n%s", what, context.Cause(ctx), describe(objects))
		}
	}
}

// describe returns a short description of the objects, for error messages.
func describe[T metav1.Object](objects []T) (out string) {
	for i, o := range objects {
		if i == 10 {
			return out + fmt.Sprintf("and %d more\n", len(objects)-i)
		}
		out += fmt.Sprintf("%s deleted=%v", o.GetName(), o.GetDeletionTimestamp() != nil)
		if node, ok := any(o).(*corev1.Node); ok {
			out += fmt.Sprintf(" conditions=%v", node.Status.Conditions)
		}
		if pod, ok := any(o).(*corev1.Pod); ok {
			out += fmt.Sprintf(" uid=%s phase=%s reason=%s message=%q conditions=%v", pod.UID, pod.Status.Phase,
				pod.Status.Reason, pod.Status.Message, pod.Status.Conditions)
		}
		out += "\n"
	}
	return out
}

// signal wakes every goroutine that waits for a change.
type signal struct {
	mu sync.Mutex
	ch chan struct{} // guarded by mu; closed at the next change
}

func (s *signal) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) raise() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

// wait calls done at each change and returns when done returns true.
func (s *signal) wait(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		next := s.next()
		if done() {
			return
		}
		select {
		case <-next:
		case <-ctx.Done():
			t.Fatalf("wait until %s: %v", what, context.Cause(ctx))
		}
	}
}
