// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lease"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestFault50DrainStopsByPriority: a group ends before the next one begins, no
// pod gets more time than its group, and only statuses are written.
func TestFault50DrainStopsByPriority(t *testing.T) {
	const each = 20
	for name, configs := range map[string][]func(*PodControllerConfig){"notifying": nil, "polled": {silent}} {
		t.Run(name, func(t *testing.T) {
			b, s := memory.New(), &stops{}
			b.StopTime = 8 * time.Second
			if name == "notifying" {
				configs = append(configs, s.recorded)
			} else {
				configs = []func(*PodControllerConfig){s.recorded, func(cfg *PodControllerConfig) { cfg.Provider = struct{ PodLifecycleHandler }{s} }}
			}
			inWorld(t, b, func(w *world) {
				w.start()
				for i := range each {
					w.api.Create(ranked(fmt.Sprintf("plain-%d", i), 0, 600))
					w.api.Create(ranked(fmt.Sprintf("short-%d", i), 100, 20))
					w.api.Create(ranked(fmt.Sprintf("critical-%d", i), CriticalPriority, 600))
				}
				w.api.Create(ranked("job", 0, 30))
				w.pass(10 * time.Second)
				b.Change("d/job", func(p *corev1.Pod) { *p = *memory.Ended(p, 0) })
				w.pass(10 * time.Second)
				w.wantPhase("job", corev1.PodSucceeded)

				began := time.Now()
				if err := w.drain(w.Context(), DrainGroups(5*time.Minute, time.Minute)...); err != nil {
					w.Error(err)
				}
				took := time.Since(began)
				synctest.Wait()
				if b.Count("delete d/job") != 0 || w.phase("job") != corev1.PodSucceeded {
					w.Errorf("the pod that had ended is %s after %d stops", w.phase("job"), b.Count("delete d/job"))
				}
				var lastPlain, firstCritical time.Time
				for i := range each {
					plain, short, critical := s.of(t, fmt.Sprintf("plain-%d", i)), s.of(t, fmt.Sprintf("short-%d", i)), s.of(t, fmt.Sprintf("critical-%d", i))
					if plain.grace != 240 || short.grace != 20 || critical.grace != 60 {
						w.Errorf("grace periods are %d, %d, %d, want 240, 20, 60", plain.grace, short.grace, critical.grace)
					}
					for _, one := range []stopped{plain, short} {
						if one.at.After(lastPlain) {
							lastPlain = one.at
						}
					}
					if firstCritical.IsZero() || critical.at.Before(firstCritical) {
						firstCritical = critical.at
					}
					for _, kind := range []string{"plain", "short", "critical"} {
						w.wantShutDown(fmt.Sprintf("%s-%d", kind, i))
					}
				}
				if first := firstCritical.Sub(lastPlain); first < b.StopTime {
					w.Errorf("the first critical pod was stopped %v after the last other pod was asked to, want after its end", first)
				}
				if took > 40*time.Second {
					w.Errorf("the drain took %v", took)
				}
				for _, write := range w.api.Writes("") {
					if write.Verb != "patch" {
						w.Errorf("a drain wrote %v, want statuses only", write)
					}
				}
				faultrow.Record(t, 50, fmt.Sprintf("a drain of %d pods of three priorities that take 8 s to stop (%s)", 3*each, name),
					"%d pods Failed/Terminated with DisruptionTarget in %v; 0 critical pods stopped before the others had ended; 0 objects removed", 3*each, took)

				// The next process leaves the pods as they are.
				calls := len(b.Calls())
				w.halt()
				w.start()
				w.pass(2 * time.Minute)
				if got := b.Calls(); len(got) != calls {
					w.Errorf("after a restart the backend is told %q", got[calls:])
				}
			}, configs...)
		})
	}
}

// TestFault50DrainIsBounded: hanging stops are left and named in the error, and do not delay others.
func TestFault50DrainIsBounded(t *testing.T) {
	b := memory.New()
	b.Fault = func(ctx context.Context, method, key string) error {
		switch {
		case method == "delete" && key == "d/hangs":
			<-ctx.Done()
			return ctx.Err()
		case method == "delete" && key == "d/fails":
			return memory.ErrUnwell
		}
		return nil
	}
	inWorld(t, b, func(w *world) {
		w.start()
		for _, p := range []*corev1.Pod{ranked("hangs", 0, 30), ranked("fails", 0, 30), ranked("good", 0, 30), ranked("critical", math.MaxInt32, 30)} {
			w.api.Create(p)
		}
		w.pass(10 * time.Second)
		began := time.Now()
		err := w.drain(w.Context(), DrainGroups(2*time.Minute, 30*time.Second)...)
		took := time.Since(began)
		if err == nil || !strings.Contains(err.Error(), "2 pods have not stopped in time") || !strings.Contains(err.Error(), "d/fails, d/hangs") {
			w.Errorf("got error %v, want one that names the two pods", err)
		}
		if limit := 2*time.Minute + drainWord; took > limit {
			w.Errorf("the drain took %v, want at most %v", took, limit)
		}
		w.wantShutDown("good")
		w.wantShutDown("critical")
		w.wantPhase("hangs", corev1.PodRunning)
		w.wantPhase("fails", corev1.PodRunning)
		if b.Len() != 2 {
			w.Errorf("the backend has %d pods, want the two that do not stop", b.Len())
		}
		faultrow.Record(t, 50, "a drain of 4 pods: the stop of one hangs, that of another always fails", "returned after %v of 2m0s and named both; the others Failed/Terminated", took)
	})
}

// TestFault50DrainRefusesNewPods: new pods fail without being started.
func TestFault50DrainRefusesNewPods(t *testing.T) {
	b := memory.New()
	b.StopTime = 20 * time.Second // at the time of a list, which must not overtake the last report
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(ranked("old", 0, 30))
		w.api.Create(ranked("deleted", 0, 30))
		w.pass(10 * time.Second)
		drained := make(chan error, 1)
		go func() { drained <- w.drain(w.Context(), DrainGroups(5*time.Minute, time.Minute)...) }()
		w.pass(5 * time.Second)
		w.api.Delete("d", "deleted", 30)
		w.api.Create(ranked("late", 0, 30))
		w.api.Create(ranked("later", CriticalPriority, 30))
		if err := <-drained; err != nil {
			w.Error(err)
		}
		w.pass(time.Second)
		w.wantShutDown("old")
		if w.api.Pod("d", "deleted") != nil {
			w.Error("the pod that was deleted meanwhile is still there")
		}
		for _, name := range []string{"late", "later"} {
			p := w.api.Pod("d", name)
			if p.Status.Phase != corev1.PodFailed || p.Status.Reason != "NodeShutdown" || p.Status.Message != "Pod was rejected as the node is shutting down." {
				w.Errorf("pod %s is %s %q %q, want Failed, NodeShutdown", name, p.Status.Phase, p.Status.Reason, p.Status.Message)
			}
			if n := b.Count("create d/" + name); n != 0 {
				w.Errorf("pod %s was created %d times", name, n)
			}
		}
		if n := b.Count("delete d/deleted"); n != 1 {
			w.Errorf("the pod that was deleted meanwhile was stopped %d times", n)
		}
	})
}

// TestFault50DrainDuringOutage: a create is running, and the API server is unavailable for a minute; the drain ends well within its time.
func TestFault50DrainDuringOutage(t *testing.T) {
	b := memory.New()
	b.Fault = func(_ context.Context, method, key string) error {
		if method == "create" && key == "d/slow" {
			time.Sleep(30 * time.Second)
		}
		return nil
	}
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(ranked("quick", 0, 30))
		w.pass(10 * time.Second)
		w.api.Create(ranked("slow", 0, 30))
		w.pass(time.Second)
		heals := time.Now().Add(time.Minute)
		w.api.Fault = func(string, string, string) error {
			if time.Now().Before(heals) {
				return memory.ErrUnwell
			}
			return nil
		}
		began := time.Now()
		if err := w.drain(w.Context(), DrainGroups(5*time.Minute, time.Minute)...); err != nil {
			w.Error(err)
		}
		took := time.Since(began)
		w.wantShutDown("quick")
		w.wantShutDown("slow")
		if b.Len() != 0 {
			w.Errorf("the backend has %d pods left", b.Len())
		}
		faultrow.Record(t, 50, "a drain while a 30 s create is under way and the API server is away for 1 min", "2 of 2 pods Failed/Terminated after %v", took)
	})
}

// TestDrainEndsWithRun: a drain does not outlive the controller, nor its caller.
func TestDrainEndsWithRun(t *testing.T) {
	b := memory.New()
	b.StopTime = time.Hour
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(ranked("p", 0, 7200))
		w.pass(10 * time.Second)
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		if err := w.drain(ctx, DrainGroups(time.Minute, 0)...); err == nil || !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
			w.Errorf("got %v, want the end of the caller's context", err)
		}
		ended := make(chan error, 1)
		go func() { ended <- w.drain(w.Context(), DrainGroups(time.Minute, 0)...) }()
		w.pass(time.Second)
		w.halt()
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "has ended") {
			w.Errorf("got %v, want that the controller has ended", err)
		}
	})
}

// TestDrainLeavesThePodsOfAnotherProcess: a waiting process returns at once, and does not touch the pods of the other process.
func TestDrainLeavesThePodsOfAnotherProcess(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.fence = lease.NewFence()
		w.fence.Lose(lease.Mark{ID: "another"})
		w.api.Create(bound("p", "a"))
		b.Run(bound("p", "a"))
		w.start()
		w.pass(time.Minute)
		began := time.Now()
		if err := w.ctl.Drain(w.Context(), DrainGroups(time.Minute, 0)...); err != nil || time.Since(began) > 0 {
			w.Errorf("the drain of nothing returns %v after %v", err, time.Since(began))
		}
		w.pass(time.Minute)
		wantCalls(t, b)
		w.wantWrites("d/p")
		w.fence.Renewed(time.Now(), true)
		w.pass(5 * time.Second)
		w.wantPhase("p", corev1.PodRunning) // after the other process has ended: nothing is refused
	})
}
