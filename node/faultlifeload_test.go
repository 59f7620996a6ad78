// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestFault32FinalizerHoldsThePod: the pod stops at the backend at once, and its object remains for the owner of the finalizer.
func TestFault32FinalizerHoldsThePod(t *testing.T) {
	const n, grace = 10, 5
	b := memory.New()
	b.StopTime = 2 * time.Second
	inWorld(t, b, func(w *world) {
		w.start()
		for i := range n {
			p := bound(fmt.Sprint("p", i), "")
			p.Finalizers = []string{"example.com/held"}
			w.api.Create(p)
		}
		w.pass(10 * time.Second)
		for i := range n {
			w.api.Delete("d", fmt.Sprint("p", i), grace)
		}
		began := time.Now()
		for b.Len() > 0 && time.Since(began) < time.Minute {
			w.pass(100 * time.Millisecond)
		}
		freed := time.Since(began)
		if freed > (grace+5)*time.Second {
			w.Errorf("the backend had the pods for %v, want at most grace + 5 s", freed)
		}
		w.pass(30 * time.Second)
		before := len(w.api.Writes(""))
		w.pass(30 * time.Minute)
		after := len(w.api.Writes("")) - before
		if most := n * 60; after > most { // one per 30 s for each pod
			w.Errorf("%d writes in 30 min, want at most %d", after, most)
		}
		for i := range n {
			name := fmt.Sprint("p", i)
			if p := w.api.Pod("d", name); p == nil || len(p.Finalizers) != 1 {
				w.Errorf("pod %s lost the finalizer that holds it", name)
				continue
			}
			w.api.Change("d", name, func(p *corev1.Pod) { p.Finalizers = nil })
		}
		w.pass(time.Minute)
		if w.api.Len() != 0 {
			w.Errorf("%d pods are left after their finalizers went", w.api.Len())
		}
		faultrow.Record(t, 32, "10 deleted pods with a finalizer, held for 30 min", "backend free after %v; %d writes in 30 min for all of them", freed, after)
	})
}

// TestFault33BurstOfUpdates: only the newest spec is sent.
func TestFault33BurstOfUpdates(t *testing.T) {
	const updates = 500
	b := memory.New()
	b.Fault = takes(memory.Update, 100*time.Millisecond)
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(bound("p", "a"))
		w.pass(time.Second)
		for i := range updates {
			w.api.Change("d", "p", func(p *corev1.Pod) { p.Spec.Containers[0].Image = fmt.Sprint("i:", i) })
			if i%5 == 0 {
				w.pass(10 * time.Millisecond)
			}
		}
		began := time.Now()
		converged := func() bool {
			p := w.api.Pod("d", "p")
			return p.Generation == updates+1 && p.Status.ObservedGeneration == p.Generation
		}
		for !converged() && time.Since(began) < time.Minute {
			w.pass(100 * time.Millisecond)
		}
		took, calls := time.Since(began), b.Count("update d/p")
		if !converged() || took > 10*time.Second {
			p := w.api.Pod("d", "p")
			w.Errorf("generation %d, observed %d after %v", p.Generation, p.Status.ObservedGeneration, took)
		}
		if image := b.Has("d/p").Spec.Containers[0].Image; image != fmt.Sprint("i:", updates-1) {
			w.Errorf("the backend has image %s", image)
		}
		if most := 20; calls > most {
			w.Errorf("UpdatePod was called %d times in a second, want at most %d", calls, most)
		}
		faultrow.Record(t, 33, "500 updates of a spec within 1 s, UpdatePod takes 100 ms", "observedGeneration %d after %v, %d UpdatePod calls", updates+1, took, calls)
	})
}

// huge returns a pod of more than a megabyte.
func huge(name string) *corev1.Pod {
	p := bound(name, "")
	p.Annotations = map[string]string{"example.com/much": strings.Repeat("a", 256<<10)}
	p.Spec.Containers = nil
	for i := range 100 {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
			Name: fmt.Sprint("c", i), Image: "i", Args: []string{strings.Repeat("b", 10<<10)},
		})
	}
	return p
}

// TestFault34HugePodsAreNotCopied: the cost of an event does not grow with the spec of the pod.
func TestFault34HugePodsAreNotCopied(t *testing.T) {
	const rounds, limit = 100, 512 << 10
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(huge("p"))
		w.pass(10 * time.Second)
		w.wantPhase("p", corev1.PodRunning)
		var before, after runtime.MemStats
		if got := len(w.api.Pod("d", "p").Status.ContainerStatuses); got != 100 {
			w.Fatalf("the pod shows %d containers, want 100", got)
		}
		runtime.ReadMemStats(&before)
		for range rounds {
			if _, err := w.ctl.worker.syncPod(w.Context(), "d/p"); err != nil {
				w.Fatal(err)
			}
			if _, err := w.ctl.statuses.writePodStatus(w.Context(), "d/p"); err != nil {
				w.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		bytes, objects := (after.TotalAlloc-before.TotalAlloc)/rounds, (after.Mallocs-before.Mallocs)/rounds
		if bytes > limit {
			w.Errorf("an event costs %d bytes, want at most %d", bytes, limit)
		}
		faultrow.Record(t, 34, "events about a pod of 1.25 MiB with 100 containers", "%d bytes in %d allocations for one event, both lanes", bytes, objects)
	})
}

// TestFault35ManyPodsFinishAtOnce: the statuses are written as fast as the client's limits allow.
func TestFault35ManyPodsFinishAtOnce(t *testing.T) {
	const qps = 50
	n := 500
	if faultrow.Strict() {
		n = 5000
	}
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		for i := range n {
			w.api.Create(bound(fmt.Sprint("p", i), ""))
		}
		w.pass(time.Minute)
		w.events()
		limiter := flowcontrol.NewTokenBucketRateLimiter(qps, qps)
		w.api.Fault = func(verb, _, _ string) error {
			if verb == "patch" {
				limiter.Accept()
			}
			return nil
		}
		writes := len(w.api.Writes(""))
		began := time.Now()
		for i := range n {
			b.Change(fmt.Sprint("d/p", i), func(p *corev1.Pod) { *p = *memory.Ended(p, int32(i%2)) })
			if i%(n/100) == 0 {
				w.pass(10 * time.Millisecond)
			}
		}
		limit := time.Duration(n/qps)*time.Second + 5*time.Second
		visible := func() (ended int) {
			for i := range n {
				if p := w.phase(fmt.Sprint("p", i)); p == corev1.PodSucceeded && i%2 == 0 || p == corev1.PodFailed && i%2 == 1 {
					ended++
				}
			}
			return ended
		}
		for visible() < n && time.Since(began) < 2*limit {
			w.pass(time.Second)
		}
		took := time.Since(began)
		if got := visible(); got < n || took > limit {
			w.Errorf("%d of %d ends are visible after %v, want all within %v", got, n, took, limit)
		}
		sent := len(w.api.Writes("")) - writes
		if sent != n {
			w.Errorf("%d writes for %d pods that have ended", sent, n)
		}
		faultrow.Record(t, 35, fmt.Sprintf("%d pods finish within 1 s, the client may send %d requests a second", n, qps), "all visible after %v with %d writes", took, sent)
	})
}
