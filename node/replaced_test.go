// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestReplacedContainerIsShownAfterOneReport: a backend reports the end of a container that the pod's policy does not restart, and then its
// replacement, each once. The API server refuses one write with both, and there is no third report.
func TestReplacedContainerIsShownAfterOneReport(t *testing.T) {
	b := memory.New()
	inWorld(t, b, func(w *world) {
		w.start()
		p := bound("p", "a")
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		w.api.Create(p)
		w.pass(time.Minute)
		b.Change("d/p", func(p *corev1.Pod) {
			c := &p.Status.ContainerStatuses[0]
			c.ContainerID, c.Ready = "x://1", false
			c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: "x://1", FinishedAt: metav1.Now()}}
		})
		w.pass(10 * time.Second)
		if c := w.api.Pod("d", "p").Status.ContainerStatuses[0]; c.State.Terminated == nil {
			t.Fatalf("the end was reported, and is shown as %+v", c.State)
		}
		b.Change("d/p", func(p *corev1.Pod) {
			c := &p.Status.ContainerStatuses[0]
			c.ContainerID, c.Ready, c.State = "x://2", true, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
		})
		w.pass(5 * time.Second)
		got := w.api.Pod("d", "p").Status.ContainerStatuses
		if len(got) != 1 || got[0].State.Running == nil || got[0].ContainerID != "x://2" {
			t.Errorf("got %+v, want that the new instance runs", got)
		}
	})
}
