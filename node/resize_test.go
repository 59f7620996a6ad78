// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

func pendingResize(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodResizePending {
			return c
		}
	}
	return nil
}

// TestResizeThatTheBackendCannotDoIsInfeasible: this is shown at once, while the resize is requested. The backend receives other changes
// with the actual resources of the pod.
func TestResizeThatTheBackendCannotDoIsInfeasible(t *testing.T) {
	b := memory.New()
	ask := func(w *world, cpu string) {
		w.api.Change("d", "p", func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
			pod.Generation++
		})
		w.pass(2 * time.Second)
	}
	inWorld(t, b, func(w *world) {
		w.start()
		w.api.Create(asking("p", "100m"))
		w.pass(time.Second)
		if c := pendingResize(w.api.Pod("d", "p")); c != nil {
			t.Errorf("before anybody wants a resize there is %v", c)
		}
		for range 2 {
			ask(w, "200m")
			c := pendingResize(w.api.Pod("d", "p"))
			if c == nil || c.Status != corev1.ConditionTrue || c.Reason != corev1.PodReasonInfeasible ||
				c.Message != "the backend does not change the resources of containers that run: c" {
				t.Fatalf("a resize that the backend cannot do has the condition %v", c)
			}
			if has, err := b.GetPod(t.Context(), "d", "p"); err != nil || has.Spec.Containers[0].Resources.Requests.Cpu().String() != "100m" {
				t.Errorf("the backend has %v (%v), want 100m", has.Spec.Containers[0].Resources.Requests.Cpu(), err)
			}
			ask(w, "100m")
			if c := pendingResize(w.api.Pod("d", "p")); c != nil {
				t.Errorf("nobody wants the resize any more: %v", c)
			}
		}
		ask(w, "200m")
		w.halt()
		w.start() // it does not know the resources at the creation of the pod
		w.pass(time.Minute)
		if c := pendingResize(w.api.Pod("d", "p")); c == nil {
			t.Error("the condition is gone after a restart")
		}
	}, declares(capability.All().Lacks("none", capability.InPlaceResize)))
}

// TestResizeOfABackendThatCanIsLeftToIt holds this also if it is unknown whether the backend can resize.
func TestResizeOfABackendThatCanIsLeftToIt(t *testing.T) {
	for name, config := range map[string]func(*PodControllerConfig){
		"declares it": declares(capability.All()), "declares nothing": func(*PodControllerConfig) {},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, memory.New(), func(w *world) {
				w.start()
				w.api.Create(asking("p", "100m"))
				w.pass(time.Second)
				w.api.Change("d", "p", func(pod *corev1.Pod) {
					pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")}
				})
				w.pass(time.Minute)
				if c := pendingResize(w.api.Pod("d", "p")); c != nil {
					t.Errorf("the node says %v of a resize", c)
				}
			}, config)
		})
	}
}
