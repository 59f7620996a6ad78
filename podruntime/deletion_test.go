// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/fakecri"
)

// TestPodsThatAreDeletedAtOnceEndTogether: pods that are deleted at the same time end in parallel, even if the runtime is slow.
func TestPodsThatAreDeletedAtOnceEndTogether(t *testing.T) {
	inWorld(t, fakecri.Config{}, func(t *testing.T, w *world) {
		const grace = 10
		w.Script(fakecri.ByName("deaf"), fakecri.Life{IgnoresStop: true}) // each stop uses the whole grace period
		var pods []*corev1.Pod
		for i := range 50 {
			pod := podOf("web-"+strconv.Itoa(i), "deaf")
			pods = append(pods, pod)
			w.create(pod)
		}
		for _, pod := range pods {
			w.awaitRunning(pod)
		}
		for _, method := range []string{"StopPodSandbox", "RemoveContainer", "RemovePodSandbox"} {
			w.Delay(method, 500*time.Millisecond)
		}
		begin := time.Now()
		for _, pod := range pods {
			w.delete(pod, grace)
		}
		for _, pod := range pods {
			w.awaitGone(pod)
		}
		if took := time.Since(begin); took > (grace+2)*time.Second {
			t.Errorf("50 pods were gone after %v, want the grace period of %d s and 2 s at most", took, grace)
		}
		if n := len(w.Sandboxes()) + len(w.Containers()); n != 0 {
			t.Errorf("got %d sandboxes and containers after the pods are gone, want 0", n)
		}
	})
}

// TestLogsAreKeptForSomebodyElse: the logs of a deleted pod stay only if the configuration says KeepLogs.
func TestLogsAreKeptForSomebodyElse(t *testing.T) {
	for _, keep := range []bool{true, false} {
		inWorld(t, fakecri.Config{}, func(t *testing.T, w *world) {
			w.kill()
			w.configure = func(c *Config) { c.KeepLogs = keep }
			w.start()
			pod := podOf("web", "app")
			w.create(pod)
			w.awaitRunning(pod)
			log := w.Containers()[0].LogPath
			write(t, log, "last line")
			w.delete(pod, 1)
			w.awaitGone(pod)
			if got := onDisk(log); got != keep {
				t.Errorf("keep %v: the log is there: %v", keep, got)
			}
		})
	}
}
