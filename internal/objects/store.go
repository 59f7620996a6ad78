// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"slices"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/virtual-kubelet/virtual-kubelet/internal/accessreview"
)

// errStopped is the error of requests after the end of the store.
var errStopped = errors.New("the store of ConfigMaps and Secrets has stopped")

// Store reads ConfigMaps and Secrets by name. It is safe for concurrent use, before and during Run.
type Store struct {
	client  kubernetes.Interface
	checker *accessreview.Checker // nil: no wait; set before Run
	cluster map[*kind]*clusterWide

	stopped chan struct{} // closed when Run has ended
	wake    chan struct{} // holds one value while there is work for Run

	mu         sync.Mutex // never held during a request or a callback
	running    bool
	work       []func(context.Context) // work that Run has not started yet
	pods       map[podID]map[key]struct{}
	referrers  map[key]map[podID]struct{}
	watches    map[key]*entry                    // of referenced objects only
	reads      map[key]*entry                    // requests in progress for objects that no pod references
	onChange   []*func(pod types.NamespacedName) // never changed in place
	hasStopped bool
}

// podID distinguishes pods with the same name.
type podID struct {
	types.NamespacedName
	uid types.UID
}

// NewStore returns a store for client. It sends no request before Run.
func NewStore(client kubernetes.Interface) *Store {
	s := &Store{
		client:    client,
		stopped:   make(chan struct{}),
		wake:      make(chan struct{}, 1),
		pods:      map[podID]map[key]struct{}{},
		referrers: map[key]map[podID]struct{}{},
		watches:   map[key]*entry{},
		reads:     map[key]*entry{},
	}
	s.cluster = map[*kind]*clusterWide{
		configMaps: {store: s, kind: configMaps},
		secrets:    {store: s, kind: secrets},
	}
	return s
}

// Behind makes the store wait for the checker before the first request for an object. Call it before Run.
func (s *Store) Behind(checker *accessreview.Checker) { s.checker = checker }

// Await waits for the store's checker, for readers of other objects for a pod.
func (s *Store) Await(ctx context.Context, attributes authorizationv1.ResourceAttributes) {
	s.checker.Wait(ctx, attributes)
}

// Run reads and watches until ctx ends, and then waits until every watch has
// ended. It returns nil when ctx ends, and an error when it is called a second time.
func (s *Store) Run(ctx context.Context) error {
	s.mu.Lock()
	again := s.running
	s.running = true
	s.mu.Unlock()
	if again {
		return errors.New("a store of ConfigMaps and Secrets runs only once")
	}
	var all sync.WaitGroup
	for {
		for _, start := range s.takeWork() {
			all.Go(func() { start(ctx) })
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			s.mu.Lock()
			s.hasStopped, s.work = true, nil
			s.mu.Unlock()
			all.Wait()
			close(s.stopped)
			return nil
		}
	}
}

func (s *Store) takeWork() []func(context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	work := s.work
	s.work = nil
	return work
}

// startLocked makes Run start a goroutine. Before Run, it queues the goroutine. After Run, it does nothing. The caller holds mu.
func (s *Store) startLocked(f func(context.Context)) {
	if s.hasStopped {
		return
	}
	s.work = append(s.work, f)
	select {
	case s.wake <- struct{}{}:
	default: // Run already knows
	}
}

// OnChange registers a function for changes of objects that were read before and that a tracked pod references. The store calls it when such an
// object is created, changed or deleted, once for each pod, possibly concurrently. It must not block. remove ends the registration, but not a running
// call.
func (s *Store) OnChange(f func(pod types.NamespacedName)) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onChange = append(slices.Clip(s.onChange), &f)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.onChange = slices.DeleteFunc(slices.Clone(s.onChange), func(other *func(types.NamespacedName)) bool { return other == &f })
	}
}

// Kept returns the number of tracked pods, and the number of functions registered with OnChange.
func (s *Store) Kept() (pods, functions int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pods), len(s.onChange)
}

// Track records the objects of a pod. A second call for the same pod (by name and UID) replaces the record.
// Track sends no request.
func (s *Store) Track(pod *corev1.Pod) {
	id := podID{types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, pod.UID}
	refs := podReferences(pod)
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.pods[id]
	s.pods[id] = refs
	for k := range refs {
		if s.referrers[k] == nil {
			s.referrers[k] = map[podID]struct{}{}
		}
		s.referrers[k][id] = struct{}{}
	}
	for k := range before {
		if _, still := refs[k]; !still {
			s.releaseLocked(k, id)
		}
	}
}

// Forget drops the references of a pod. The store drops an object and its watch if no pod references it. Forget ignores an unknown pod.
func (s *Store) Forget(namespace, name string, uid types.UID) {
	id := podID{types.NamespacedName{Namespace: namespace, Name: name}, uid}
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.pods[id] {
		s.releaseLocked(k, id)
	}
	delete(s.pods, id)
}

func (s *Store) releaseLocked(k key, id podID) {
	delete(s.referrers[k], id)
	if len(s.referrers[k]) > 0 {
		return
	}
	delete(s.referrers, k)
	if e := s.watches[k]; e != nil {
		delete(s.watches, k)
		e.dropLocked()
	}
}
