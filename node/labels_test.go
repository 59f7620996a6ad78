// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestUsersLabelsSurviveOldReports: a report has labels from the time when it was made; users may have changed them since.
func TestUsersLabelsSurviveOldReports(t *testing.T) {
	relabel := func(w *world, value string) {
		w.api.Change("d", "p", func(p *corev1.Pod) { p.Labels = map[string]string{"user": value} })
	}
	for name, configs := range map[string][]func(*PodControllerConfig){"notified": nil, "polled": {silent}} {
		t.Run(name, func(t *testing.T) {
			b := memory.New()
			inWorld(t, b, func(w *world) {
				w.start()
				p := bound("p", "a")
				p.Labels = map[string]string{"user": "0"}
				w.api.Create(p)
				w.pass(10 * time.Second)
				relabel(w, "1")
				w.pass(10 * time.Second)
				if got := w.api.Pod("d", "p").Labels["user"]; got != "1" {
					t.Errorf("label is %q, want what the user set, 1", got)
				}
				b.Script(func(_ context.Context, method, _ string) error {
					if method == "update" {
						return memory.ErrUnwell
					}
					return nil
				})
				for _, value := range []string{"2", "3", "4"} {
					relabel(w, value)
					w.pass(7 * time.Second)
				}
				if got := w.api.Pod("d", "p").Labels["user"]; got != "4" {
					t.Errorf("label is %q, want what the user set last, 4", got)
				}
			}, configs...)
		})
	}
}

// TestOlderCopyAfterARestart: a report was being delivered while the daemon restarted. The backend already has a newer copy of the pod, so
// the labels in the report are outdated.
func TestOlderCopyAfterARestart(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		p := bound("p", "a")
		p.Labels = map[string]string{"user": "0"}
		w.api.Create(p)
		w.pass(time.Second)
		late := b.Has("d/p")
		w.api.Change("d", "p", func(p *corev1.Pod) { p.Labels = map[string]string{"user": "1"} })
		w.pass(time.Second)
		w.halt()
		w.start()
		w.pass(time.Second)
		late.Status.Message = "late"
		b.Tell(late)
		w.pass(time.Second)
		b.Change("d/p", func(p *corev1.Pod) { p.Labels["provider"] = "own" })
		w.pass(time.Second)
		if got := w.api.Pod("d", "p").Labels; got["user"] != "1" || got["provider"] != "own" {
			t.Errorf("labels are %v, want what the user set, 1, and the provider's own", got)
		}
	})
}

// TestConditionsThatTheProviderDropsAreItsOwn: the provider repeats the conditions of other writers, and later omits them.
func TestConditionsThatTheProviderDropsAreItsOwn(t *testing.T) {
	b := memory.New()
	conditions := func(types ...corev1.PodConditionType) {
		b.Change("d/p", func(p *corev1.Pod) {
			p.Status.Conditions = nil
			for _, kind := range types {
				p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue})
			}
		})
	}
	inWorld(t, b, func(w *world) {
		w.start()
		p := bound("p", "a")
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "gate"}}
		w.api.Create(p)
		w.pass(time.Second)
		w.api.Change("d", "p", func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "gate", Status: corev1.ConditionTrue})
		})
		conditions("gate", "mine")
		w.pass(10 * time.Second)
		conditions()
		w.pass(10 * time.Second)
		if p := w.api.Pod("d", "p"); hasCondition(p, "mine") || !hasCondition(p, "gate") {
			t.Errorf("conditions are %v, want the gate without mine", p.Status.Conditions)
		}
		w.api.Change("d", "p", func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "mine", Status: corev1.ConditionTrue})
		})
		w.pass(time.Minute)
		if !hasCondition(w.api.Pod("d", "p"), "mine") {
			t.Error("a condition that the provider dropped once, and another writer has set since, is lost")
		}
	})
}
