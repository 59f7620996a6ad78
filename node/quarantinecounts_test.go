// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lease"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestDoubtOutlastsPodsThatUsersDelete: the backend does not show most pods, and users delete most of these. The doubt about the backend
// still protects the remaining pod.
func TestDoubtOutlastsPodsThatUsersDelete(t *testing.T) {
	for name, grace := range map[string]int64{"by force": 0, "with a grace period": 30} {
		t.Run(name, func(t *testing.T) {
			b := memory.New()
			inWorld(t, b, func(w *world) {
				w.start()
				w.runWith("shown", 2, corev1.RestartPolicyNever) // first in the list
				w.runWith("p", 4, corev1.RestartPolicyNever)
				b.Lie(memory.Lie{Page: 2, Reads: true})
				w.pass(time.Minute)
				for i := range 3 {
					w.api.Delete("d", fmt.Sprint("p", i), grace)
				}
				w.pass(defaultQuarantine - time.Minute - 10*time.Second)
				w.wantPhase("p3", corev1.PodRunning)
				b.Truth()
				w.pass(2 * time.Minute)
				w.wantPhase("p3", corev1.PodRunning)
				if b.Len() != 3 {
					t.Errorf("the backend has %d pods, want the 3 that users want", b.Len())
				}
			}, onNode)
		})
	}
}

// TestDoubtOutlastsLostPodsThatUsersRemove: the backend lost most pods, and DeletePod returns not-found for each. Lists and stops are
// requested at the same time.
func TestDoubtOutlastsLostPodsThatUsersRemove(t *testing.T) {
	for range 10 {
		b := memory.New()
		inWorld(t, b, func(w *world) {
			w.start()
			w.runWith("p", 6, corev1.RestartPolicyNever)
			for i := range 4 {
				b.Lose(fmt.Sprint("d/p", i))
			}
			w.pass(40 * time.Second)
			for i := range 3 {
				w.api.Delete("d", fmt.Sprint("p", i), 0)
			}
			w.pass(defaultQuarantine - 50*time.Second)
			w.wantPhase("p3", corev1.PodRunning)
			w.until("the loss of the fourth is certain", 2*time.Minute, func() bool { return w.phase("p3") == corev1.PodFailed })
		}, onNode)
	}
}

// TestLostPodsOfManyNewOnesAreNoDoubt: no list succeeds since the creation of these pods, and a few of them are lost.
func TestLostPodsOfManyNewOnesAreNoDoubt(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		b.Inject(memory.Fault{Method: memory.List, Err: memory.ErrUnwell})
		w.runWith("p", 30, corev1.RestartPolicyNever)
		for i := range 5 {
			b.Lose(fmt.Sprint("d/p", i))
		}
		w.pass(time.Minute)
		if told := w.ctl.worker.missing.message(time.Now()); told != "" {
			t.Errorf("5 of 30 pods are many: %s", told)
		}
		if e := strings.Join(w.events(), "\n"); strings.Contains(e, eventPodsMissing) {
			t.Errorf("events are %q, want none of a doubt", e)
		}
	}, onNode, silent)
}

// TestNewLeaseTermBeginsQuarantineAnew: another process acted for the node, so earlier absences prove nothing.
func TestNewLeaseTermBeginsQuarantineAnew(t *testing.T) {
	for name, lose := range map[string]func(w *world, i int){
		"at the backend":    func(w *world, i int) { w.backend.Lose(fmt.Sprint("d/p", i)) },
		"in the API server": func(w *world, i int) { w.api.Vanish("d", fmt.Sprint("p", i)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := memory.New()
			inWorld(t, b, func(w *world) {
				f := lease.NewFence()
				w.fence = f
				w.launch()
				hold := func(d time.Duration) {
					for end := time.Now().Add(d); time.Now().Before(end); w.pass(5 * time.Second) {
						f.Renewed(time.Now(), false)
					}
				}
				hold(10 * time.Second)
				for i := range 4 {
					p := bound(fmt.Sprint("p", i), "")
					p.Spec.RestartPolicy = corev1.RestartPolicyNever
					w.api.Create(p)
				}
				hold(2 * time.Minute)
				for i := range 3 {
					lose(w, i)
				}
				w.api.Compact()
				w.api.Cut()
				hold(defaultQuarantine - time.Minute)
				f.Lose(lease.Mark{ID: "another"})
				w.pass(10 * time.Second)
				f.Renewed(time.Now(), true)
				held := func() bool { return b.Len()+w.phases("p", 4)[corev1.PodRunning] == 5 }
				hold(defaultQuarantine - 20*time.Second)
				if !held() {
					t.Errorf("the backend has %d pods, and the API server %v, less than the quarantine after another process acted: want 1 and 4, or 4 and 1",
						b.Len(), w.phases("p", 4))
				}
				hold(2 * time.Minute)
				if held() {
					t.Error("nothing is done about the pods after the quarantine")
				}
			}, onNode)
		})
	}
}
