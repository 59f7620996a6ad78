// SPDX-License-Identifier: Apache-2.0

// Package backend is a backend with instances that outlive the daemon: it lives in the test's process, and the
// daemon, another process, reaches it over a unix socket with a Client.
//
// The guarantee: it records all of its actions in their order. An instance exists as soon as a create arrives, even if the daemon dies
// before the response.
//
// Note: a create is not idempotent. A second create for a UID starts a second instance, to show duplicates. An ended instance is
// kept until Forget. A call that arrives later than staleAfter, for example from a frozen process, is refused, because its sender's state
// is outdated.
package backend

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/ledger"
)

// Times are the durations of actions.
type Times struct {
	Create time.Duration // a CreatePod; its instance exists from the beginning
	Start  time.Duration // from the create until the containers run
	Stop   time.Duration // from the DeletePod until the containers have ended
}

// Fault is the fault of one call. The zero value is no fault.
type Fault struct {
	Panic string        // the client panics with it
	Error string        // the error that the backend returns without doing anything
	Delay time.Duration // before the backend does anything
}

// Backend keeps the instances. Make one with New.
type Backend struct {
	times  Times
	record func(ledger.Entry) // called in order, with mu held

	mu        sync.Mutex
	fault     func(method, key string) Fault // guarded by mu
	replay    bool                           // guarded by mu
	numbers   int                            // guarded by mu; given to instances and reports
	instances map[string][]*instance         // guarded by mu; keyed by namespace/name, oldest first
	watchers  map[*watcher]struct{}          // guarded by mu
	closed    bool                           // guarded by mu
}

// New returns a backend with a call of record for each of its actions.
func New(times Times, record func(ledger.Entry)) *Backend {
	return &Backend{
		times: times, record: record,
		instances: map[string][]*instance{}, watchers: map[*watcher]struct{}{},
	}
}

// Script sets the faults of calls from now on; method is a method of the provider's interface.
func (b *Backend) Script(fault func(method, key string) Fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = fault
}

// Replay makes the backend send all pods to every new watcher at once, as some backends do. The states are the last known ones, and may be
// old.
func (b *Backend) Replay(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.replay = on
}

// Forget drops the ended instances of a pod, and drops the others when they end: no later call asks for them.
func (b *Backend) Forget(namespace, name string, uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, i := range b.instancesOf(namespace+"/"+name, uid) {
		i.forgotten = true
		if i.ended {
			b.dropInstance(i)
		}
	}
}

// Close cancels all future actions.
func (b *Backend) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, list := range b.instances {
		for _, i := range list {
			i.stopTimers()
		}
	}
	for w := range b.watchers {
		w.close()
	}
}

// Live returns the IDs of the existing instances without an end, by UID.
func (b *Backend) Live() map[types.UID][]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	live := map[types.UID][]string{}
	for _, list := range b.instances {
		for _, i := range list {
			if !i.ended {
				live[i.pod.UID] = append(live[i.pod.UID], i.id)
			}
		}
	}
	return live
}

// faultOf returns the fault of a call from the script.
func (b *Backend) faultOf(method, key string) Fault {
	b.mu.Lock()
	script := b.fault
	b.mu.Unlock()
	if script == nil {
		return Fault{}
	}
	return script(method, key)
}

// recordEntry records an event of an instance, or of a pod without an instance. The caller holds mu.
func (b *Backend) recordEntry(verb ledger.Verb, step ledger.Step, pod *corev1.Pod, i *instance) {
	e := ledger.Entry{Verb: verb, Step: step, UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name}
	if i != nil {
		e.Instance = i.id
	}
	if verb == ledger.Status {
		e.Status = &pod.Status
	}
	b.record(e)
}

// nextNumber returns the next number. The caller holds mu.
func (b *Backend) nextNumber() int {
	b.numbers++
	return b.numbers
}

// newestInstance returns the newest instance of that name, or nil if there is none. The caller holds mu.
func (b *Backend) newestInstance(key string) *instance {
	if list := b.instances[key]; len(list) > 0 {
		return list[len(list)-1]
	}
	return nil
}

// instancesOf returns the instances of the pod. The caller holds mu.
func (b *Backend) instancesOf(key string, uid types.UID) (found []*instance) {
	for _, i := range b.instances[key] {
		if i.pod.UID == uid {
			found = append(found, i)
		}
	}
	return found
}

// keyOf returns namespace/name of a pod.
func keyOf(pod *corev1.Pod) string { return fmt.Sprintf("%s/%s", pod.Namespace, pod.Name) }
