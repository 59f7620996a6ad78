// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestFault29BackendDownForLong: retries never end, and their delay ends when the backend is available again.
func TestFault29BackendDownForLong(t *testing.T) {
	const n, limit = 20, 10 * time.Second
	for name, kick := range map[string]bool{"a Ping that succeeds": true, "a list that succeeds": false} {
		t.Run(name, func(t *testing.T) {
			b := memory.New()
			b.Inject(memory.Fault{Method: memory.Create, Err: memory.ErrUnwell})
			if !kick {
				b.Inject(memory.Fault{Method: memory.List, Err: memory.ErrUnwell})
			}
			inWorld(t, b, func(w *world) {
				w.start()
				for i := range n {
					w.api.Create(bound(fmt.Sprint("p", i), ""))
					w.pass(time.Second)
				}
				for b.Count("create d/p0") < MaxRetries+5 {
					w.pass(7 * time.Second)
				}
				for i := range n {
					if phase := w.phase(fmt.Sprint("p", i)); phase != corev1.PodPending {
						w.Errorf("pod %d is %s while the backend is down, want Pending", i, phase)
					}
				}
				tries := b.Count("create d/p0")
				b.Heal()
				began := time.Now()
				if kick {
					w.ctl.Kick() // as the node does when a Ping succeeds after a failure
				}
				for b.Len() < n && time.Since(began) < 5*time.Minute {
					w.pass(100 * time.Millisecond)
				}
				took := time.Since(began)
				if took > limit {
					w.Errorf("the last pod was created %v after the backend healed, want at most %v", took, limit)
				}
				faultrow.Record(t, 29, fmt.Sprintf("creates of %d pods fail %d times, then the backend heals, noticed by %s", n, tries, name), "all created after %v", took)
			})
		})
	}
}

// TestFault30OneTransientError: a temporary error does not fail the pod of a Job.
func TestFault30OneTransientError(t *testing.T) {
	const n = 50
	b := memory.New()
	for i := range n {
		b.Inject(memory.Fault{Method: memory.Create, Key: fmt.Sprint("d/p", i), Times: 1, Err: fmt.Errorf("429 too many requests")})
	}
	inWorld(t, b, func(w *world) { // the harness finds pods that are Failed without a cause
		w.start()
		for i := range n {
			p := bound(fmt.Sprint("p", i), "")
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
			w.api.Create(p)
		}
		w.pass(10 * time.Second)
		for i := range n {
			b.Change(fmt.Sprint("d/p", i), func(p *corev1.Pod) { *p = *memory.Ended(p, 0) })
		}
		w.pass(10 * time.Second)
		succeeded := 0
		for i := range n {
			if w.phase(fmt.Sprint("p", i)) == corev1.PodSucceeded {
				succeeded++
			}
			if calls := b.Count(fmt.Sprint("create d/p", i)); calls != 2 {
				w.Errorf("pod %d was created %d times, want a second time after the error", i, calls)
			}
		}
		if succeeded != n {
			w.Errorf("%d of %d pods succeeded", succeeded, n)
		}
		faultrow.Record(t, 30, "the first CreatePod of 50 pods with restartPolicy Never fails", "%d/50 Succeeded, 0 Failed", succeeded)
	})
}

// TestFault31SlowCreateOfAnOldPod: neither the age of the object nor the duration of the call is a failure.
func TestFault31SlowCreateOfAnOldPod(t *testing.T) {
	const n = 20
	for name, configs := range map[string][]func(*PodControllerConfig){"notifying": nil, "polled": {silent}} {
		t.Run(name, func(t *testing.T) {
			b := memory.New()
			b.Fault = takes(memory.Create, 9*time.Second)
			inWorld(t, b, func(w *world) {
				for i := range n {
					p := bound(fmt.Sprint("p", i), "")
					p.Spec.RestartPolicy = corev1.RestartPolicyNever
					w.api.Create(p)
				}
				w.pass(2 * time.Minute)
				w.start()
				w.pass(2 * time.Minute)
				creates := 0
				for i := range n {
					w.wantPhase(fmt.Sprint("p", i), corev1.PodRunning)
					creates += b.Count(fmt.Sprint("create d/p", i))
				}
				if creates != n {
					w.Errorf("CreatePod was called %d times for %d pods", creates, n)
				}
				faultrow.Record(t, 31, "CreatePod takes 9 s for 20 pods that are 2 min old ("+name+")", "0 Failed, %d creates for 20 pods", creates)
			}, configs...)
		})
	}
}
