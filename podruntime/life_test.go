// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
)

func TestPodRunsAndIsDeleted(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		pod := podOf("web", "main")
		w.create(pod)
		status := w.awaitRunning(pod)
		if status.PodIP == "" || status.HostIP != "192.0.2.1" || status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("got status %s, want the addresses of the pod and of the node, and no restart", dump(status))
		}
		want := []string{"RunPodSandbox default/web", "CreateContainer default/web/main", "StartContainer default/web/main"}
		if diff := cmp.Diff(want, w.Changes()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		w.delete(pod, 30)
		end := w.await(pod, "ended", func(s *corev1.PodStatus) bool { return s.Phase == corev1.PodFailed || s.Phase == corev1.PodSucceeded })
		if c := end.ContainerStatuses[0].State.Terminated; c == nil || c.ExitCode != 143 {
			t.Errorf("got %s, want exit code 143", dump(end))
		}
		w.awaitGone(pod)
		if n := len(w.Sandboxes()) + len(w.Containers()); n != 0 {
			t.Errorf("got %d sandboxes and containers after the pod is gone, want 0", n)
		}
		if onDisk(w.runtime.workers.exec.settings.LogDirectory(pod)) {
			t.Error("the logs of a pod that is gone are still there")
		}
	})
}

// TestReportMayAskBack: the receiver of a report may call GetPod before it returns, even for the first report.
func TestReportMayAskBack(t *testing.T) {
	inWorld(t, fakecri.Config{}, func(t *testing.T, w *world) {
		w.heard = func(pod *corev1.Pod) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if got, err := w.runtime.GetPod(ctx, pod.Namespace, pod.Name); err != nil || got.Status.Phase != pod.Status.Phase {
				t.Errorf("a report says %s, and who got it asked for the pod: got %v, %v", pod.Status.Phase, got, err)
			}
		}
		pod := podOf("web", "main")
		w.create(pod)
		w.awaitRunning(pod)
	})
}

func TestOOMScoreFollowsTheMemoryOfTheMachine(t *testing.T) {
	inWorld(t, fakecri.Config{NoEvents: true}, func(t *testing.T, w *world) {
		if w.runtime.workers.exec.settings.MemoryCapacity <= 0 {
			t.Errorf("got %d bytes of memory, want those of the machine", w.runtime.workers.exec.settings.MemoryCapacity)
		}
	})
}
