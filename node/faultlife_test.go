// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestFault25ForcedAndRecreatedAtOnce: the old instance stops before the new one starts, although a force deletion does not wait for that.
func TestFault25ForcedAndRecreatedAtOnce(t *testing.T) {
	const names, rounds = 20, 50
	b := memory.New()
	b.StopTime = 2 * time.Second
	var together, slowest atomic.Int64
	b.Fault = func(_ context.Context, method, key string) error {
		if method == memory.Create && b.Has(key) != nil {
			together.Add(1)
		}
		return nil
	}
	inWorld(t, b, func(w *world) {
		w.start()
		for i := range names {
			w.api.Create(bound(fmt.Sprint("p", i), types.UID(fmt.Sprintf("p%d-0", i))))
		}
		w.pass(10 * time.Second)
		for round := 1; round <= rounds; round++ {
			for i := range names {
				w.api.Delete("d", fmt.Sprint("p", i), 0)
				if i%2 == 0 {
					time.Sleep(time.Duration(i) * time.Millisecond / 4)
				}
				w.api.Create(bound(fmt.Sprint("p", i), types.UID(fmt.Sprintf("p%d-%d", i, round))))
			}
			began := time.Now()
			for left := names; left > 0; {
				w.pass(100 * time.Millisecond)
				left = 0
				for i := range names {
					if p := b.Has(fmt.Sprint("d/p", i)); p == nil || p.UID != types.UID(fmt.Sprintf("p%d-%d", i, round)) {
						left++
					}
				}
				if time.Since(began) > time.Minute {
					w.Fatalf("round %d: %d new pods do not run after a minute", round, left)
				}
			}
			slowest.Store(max(slowest.Load(), int64(time.Since(began))))
			w.pass(time.Second)
			w.events()
		}
		if n := together.Load(); n != 0 {
			w.Errorf("%d times a pod was created while an older one of its name ran", n)
		}
		if took := time.Duration(slowest.Load()); took > b.StopTime+5*time.Second {
			w.Errorf("a new pod ran %v after it was created, want at most 5 s more than the stop of the old one", took)
		}
		faultrow.Record(t, 25, "force-delete and recreate of the same name within 5 ms, 1000 times, instances that take 2 s to stop",
			"%d/%d times two instances of one name; new pod running after at most %v", together.Load(), names*rounds, time.Duration(slowest.Load()))
	})
}

// takes returns a script that makes a method slow.
func takes(method string, d time.Duration) func(context.Context, string, string) error {
	return func(_ context.Context, m, _ string) error {
		if m == method {
			<-time.After(d)
		}
		return nil
	}
}

// TestFault26DeletedWhileItIsCreated: the object is not removed before the backend has confirmed the stop.
func TestFault26DeletedWhileItIsCreated(t *testing.T) {
	const n = 20
	b := memory.New()
	b.StopTime = 2 * time.Second
	b.Fault = takes(memory.Create, 30*time.Second)
	inWorld(t, b, func(w *world) {
		w.start()
		for i := range n {
			w.api.Create(bound(fmt.Sprint("p", i), ""))
		}
		w.pass(5 * time.Second)
		for i := range n {
			w.api.Delete("d", fmt.Sprint("p", i), 5)
		}
		w.pass(20 * time.Second) // long after the grace period
		early := 0
		for i := range n {
			key := fmt.Sprint("d/p", i)
			if w.api.Pod("d", fmt.Sprint("p", i)) == nil && b.Count("create "+key) > 0 {
				early++
			}
		}
		if early > 0 {
			w.Errorf("%d API objects went while the create was under way", early)
		}
		began := time.Now()
		for w.api.Len() > 0 && time.Since(began) < 5*time.Minute {
			w.pass(100 * time.Millisecond)
		}
		if w.api.Len() != 0 || b.Len() != 0 {
			w.Errorf("%d pods are left in the API server, %d at the backend", w.api.Len(), b.Len())
		}
		faultrow.Record(t, 26, "20 pods deleted 5 s into a create of 30 s, with a grace period of 5 s", "%d/20 objects removed before the backend confirmed; all gone %v after the deletion; leaks %d",
			early, 20*time.Second+time.Since(began), b.Len())
	})
}

// TestFault27DeleteKeepsFailing: the stop is requested until it is confirmed, and the pods count as stuck in the meantime.
func TestFault27DeleteKeepsFailing(t *testing.T) {
	const n = 5
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		for i := range n {
			w.api.Create(bound(fmt.Sprint("p", i), ""))
		}
		w.pass(time.Second)
		for i := range n {
			b.Change(fmt.Sprint("d/p", i), func(p *corev1.Pod) {
				p.Status.Phase = corev1.PodPending
				p.Status.ContainerStatuses[0].Ready = false
				p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
			})
		}
		w.pass(time.Second)
		b.Inject(memory.Fault{Method: memory.Delete, Err: memory.ErrUnwell})
		for i := range n {
			w.api.Delete("d", fmt.Sprint("p", i), 10)
		}
		w.pass(5 * time.Minute)
		stuck := metric(t, "virtual_kubelet_pods_terminating_stuck")
		if w.api.Len() != n || b.Len() != n || stuck != n {
			w.Errorf("%d pods in the API server, %d at the backend, %v count as stuck; want %d each", w.api.Len(), b.Len(), stuck, n)
		}
		tries := b.Count("delete d/p0")
		b.Heal()
		w.pass(lastRetry)
		if w.api.Len() != 0 || b.Len() != 0 {
			w.Errorf("a minute after the backend healed %d pods are left in the API server, %d at the backend", w.api.Len(), b.Len())
		}
		w.pass(relistPeriod)
		if now := metric(t, "virtual_kubelet_pods_terminating_stuck"); now != 0 {
			w.Errorf("%v pods still count as stuck", now)
		}
		faultrow.Record(t, 27, "DeletePod of 5 Pending pods fails for 5 min", "leaks 0; %d tries for one pod; gauge terminating_stuck %v during, 0 after", tries, stuck)
	})
}

// TestFault28SlowerThanGrace: the end of the grace period confirms nothing.
func TestFault28SlowerThanGrace(t *testing.T) {
	const n, grace = 20, 10
	for name, configs := range map[string][]func(*PodControllerConfig){"notifying": nil, "polled": {silent}} {
		t.Run(name, func(t *testing.T) {
			b := memory.New()
			b.StopTime = (grace + 20) * time.Second
			inWorld(t, b, func(w *world) {
				w.start()
				for i := range n {
					w.api.Create(bound(fmt.Sprint("p", i), ""))
				}
				w.pass(10 * time.Second)
				for i := range n {
					w.api.Delete("d", fmt.Sprint("p", i), grace)
				}
				w.pass(b.StopTime - time.Second)
				early := n - w.api.Len()
				if early != 0 {
					w.Errorf("%d API objects went before the backend has confirmed the stop", early)
				}
				w.pass(6 * time.Second)
				if w.api.Len() != 0 {
					w.Errorf("%d pods are left 5 s after they have stopped", w.api.Len())
				}
				stops := 0
				for i := range n {
					stops += b.Count(fmt.Sprint("delete d/p", i))
				}
				if stops != n {
					w.Errorf("DeletePod was called %d times for %d pods", stops, n)
				}
				faultrow.Record(t, 28, "20 instances that stop 20 s after the end of their grace period ("+name+")",
					"%d/20 objects removed before the stop; all gone within 5 s of it; %d DeletePod calls", early, stops)
			}, configs...)
		})
	}
}
