// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestAPIServerGoesAway starts a node without a running API server, and later stops the API server again.
func TestAPIServerGoesAway(t *testing.T) {
	t.Parallel()
	w := newWorldIn(t, testapi.New(t, testapi.Options{NoControllerManager: true, NoScheduler: true}))
	w.api.Stop(t)
	daemon := w.launch()
	w.requests.changed.wait(t, "the node has asked in vain", func() bool {
		return len(w.requests.those(func(r request) bool { return r.status == 0 })) >= 3
	})
	w.api.Restart(t)
	if err := daemon.WaitReady(t.Context(), patience); err != nil {
		t.Fatal(err)
	}
	stays := w.startPod(w.pod("stays"))
	w.startPod(w.pod("ends"))

	w.api.Kill(t)
	w.backend.Change(w.key("ends"), func(pod *corev1.Pod) { *pod = *memory.Ended(pod, 7) })
	w.requests.changed.wait(t, "the node has tried to write the status in vain", func() bool {
		return len(w.requests.those(func(r request) bool { return r.writes() && r.status == 0 })) > 0
	})
	w.api.Restart(t)
	ended := w.awaitPod("ends", "has failed", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed })
	if state := ended.Status.ContainerStatuses[0].State.Terminated; state == nil || state.ExitCode != 7 {
		t.Errorf("the container that ended meanwhile: got %+v, want exit code 7", state)
	}
	if pod := w.awaitPod("stays", "runs", running); pod.UID != stays.UID {
		t.Errorf("pod stays has UID %s, want %s", pod.UID, stays.UID)
	}
	w.startPod(w.pod("new"))
	w.awaitNode("is ready", nodeReady)
	w.createdOnce([]string{"stays", "ends", "new"})
	if n := w.backend.Count("delete " + w.key("stays")); n > 0 {
		t.Errorf("DeletePod was called %d times for a pod that nobody deleted", n)
	}

	for _, name := range []string{"stays", "ends", "new"} {
		w.remove(name, metav1.DeleteOptions{})
	}
	w.awaitNoPods()
	select {
	case <-daemon.Done():
		t.Errorf("the node ended: %v", daemon.Err())
	default:
	}
}
