// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// minWatchTimeout is longer than the default, because a node has many of these watches, and most have no events.
const minWatchTimeout = 30 * time.Minute

// backoffReset is the minimum duration of a watch after which the backoff is reset.
const backoffReset = 2 * time.Minute

// watchObject lists and watches the object by name until the entry is dropped, the
// object is known to be immutable, or Run ends.
func (e *entry) watchObject(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	e.store.mu.Lock()
	dropped := e.dropped
	e.stop = stop
	e.store.mu.Unlock()
	if dropped {
		return
	}
	k := e.key
	e.store.checker.Wait(ctx, authorizationv1.ResourceAttributes{Verb: "list", Resource: k.kind.resource.Resource, Namespace: k.namespace, Name: k.name})
	if !e.store.checker.MayList(ctx, k.kind.resource.Resource, k.namespace) {
		e.pollObject(ctx)
		return
	}
	source := &singleObject{entry: e}
	// The first retries are earlier than a reflector's: without the checker, or if another API server answers, the Node authorizer may refuse,
	// because it does not know a pod yet.
	backoff := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 9, Cap: 30 * time.Second}
	reflector := cache.NewReflectorWithOptions(source, e.key.kind.example, source, cache.ReflectorOptions{
		Name: e.key.String(), MinWatchTimeout: minWatchTimeout,
	})
	// This is Reflector.Run, except that an error becomes an answer. It ends with ctx, or when the API server
	// forbids this identity to list.
	mayOnlyGet := false
	_ = backoff.DelayWithReset(clock.RealClock{}, backoffReset).Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		err := reflector.ListAndWatchWithContext(ctx)
		if apierrors.IsForbidden(err) && ctx.Err() == nil {
			e.store.checker.Refused(k.kind.resource.Resource, k.namespace)
			mayOnlyGet = !e.store.checker.MayList(ctx, k.kind.resource.Resource, k.namespace)
		}
		if err != nil && ctx.Err() == nil && !mayOnlyGet && !e.setError(err) {
			log.G(ctx).WithError(err).WithField("object", e.key.String()).Warn("watch ended, the object is served as it was last seen")
		}
		return mayOnlyGet, nil
	})
	source.close()
	if mayOnlyGet {
		e.pollObject(ctx)
	}
}

// singleObject is the reflector's source and its store: a list of at most one
// object. It implements cache.ListerWatcherWithContext and cache.ReflectorStore.
type singleObject struct {
	entry *entry

	mu       sync.Mutex
	closed   bool
	requests sync.WaitGroup // lists under way
}

// IsWatchListSemanticsUnSupported keeps the reflector from streaming its first list. For one object, streaming has no advantage, and a reflector that
// waits before another stream ignores the end of its context.
func (*singleObject) IsWatchListSemanticsUnSupported() bool { return true }

// ListWithContext reads the latest version of the object: the cache of an API server may lag, and lack a new object.
func (l *singleObject) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if !l.beginList() {
		return nil, context.Canceled
	}
	defer l.requests.Done()
	if options.ResourceVersion == "0" {
		options.ResourceVersion = ""
	}
	k := l.entry.key
	options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, k.name).String()
	return k.kind.list(ctx, l.entry.store.client, k.namespace, options)
}

// WatchWithContext watches the object.
func (l *singleObject) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	k := l.entry.key
	options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, k.name).String()
	return k.kind.watch(ctx, l.entry.store.client, k.namespace, options)
}

// List is ListWithContext for callers without a context. The reflector does not use it.
func (l *singleObject) List(options metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), options)
}

// Watch is WatchWithContext for callers without a context. The reflector does not use it.
func (l *singleObject) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), options)
}

// beginList counts a list, and reports whether it may start. A stopped reflector may leave a goroutine, so a list may start or continue after its
// return.
func (l *singleObject) beginList() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.requests.Add(1)
	return true
}

// close prevents further lists, and waits for lists in progress.
func (l *singleObject) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.requests.Wait()
}

// Replace handles the result of a list.
func (l *singleObject) Replace(items []any, _ string) error {
	for _, item := range items {
		if o, ok := l.ownObject(item); ok {
			l.entry.set(o)
			return nil
		}
	}
	l.entry.set(nil)
	return nil
}

// Add handles an event of the watch.
func (l *singleObject) Add(item any) error {
	if o, ok := l.ownObject(item); ok {
		l.entry.set(o)
	}
	return nil
}

// Update handles an event of the watch.
func (l *singleObject) Update(item any) error { return l.Add(item) }

// Delete handles an event of the watch.
func (l *singleObject) Delete(item any) error {
	if _, ok := l.ownObject(item); ok {
		l.entry.set(nil)
	}
	return nil
}

// Resync does nothing, because there are no handlers.
func (*singleObject) Resync() error { return nil }

// ownObject returns the item if it is the watched object, because a server may not support field selectors.
func (l *singleObject) ownObject(item any) (object, bool) {
	o, ok := item.(object)
	return o, ok && o.GetName() == l.entry.key.name && o.GetNamespace() == l.entry.key.namespace
}
