// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRestartInTheMiddle(t *testing.T) {
	t.Parallel()
	const n = 80
	w := newWorld(t)
	w.backend.StopTime = 300 * time.Millisecond // so that pods also stop while the daemon is down
	first := w.start()

	names := numbered("pod", n)
	created := make(chan error, 1)
	go func() { created <- forEach(names, w.tryCreate) }()
	w.awaitBackend("the backend has a quarter of the pods", func() bool { return w.backend.Len() >= n/4 })
	first.stop()
	second := w.start()
	if err := <-created; err != nil {
		t.Fatal(err)
	}
	w.awaitRunning(n)
	w.createdOnce(names)

	removed := make(chan error, 1)
	go func() { removed <- forEach(names, w.tryRemove) }()
	w.awaitBackend("the backend has stopped a quarter of the pods", func() bool { return w.backend.Len() <= n*3/4 })
	second.stop()
	w.start()
	if err := <-removed; err != nil {
		t.Fatal(err)
	}
	w.awaitNoPods()
	w.awaitEmptyBackend()
	w.createdOnce(names)
}

func TestDeletedWhileTheDaemonWasDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	daemon := w.start()
	graceful := w.startPod(w.pod("graceful"))
	w.startPod(w.pod("forced"))
	stays := w.startPod(w.pod("stays"))
	daemon.stop()

	w.remove("graceful", metav1.DeleteOptions{})
	w.remove("forced", atOnce())
	w.start()
	w.awaitGone("graceful", graceful.UID)
	w.awaitBackend("the backend has one pod", func() bool { return w.backend.Len() == 1 })

	if pod := w.awaitPod("stays", "runs", running); pod.UID != stays.UID {
		t.Errorf("pod stays has UID %s now, want %s", pod.UID, stays.UID)
	}
	if pod := w.backend.Has(w.key("stays")); pod == nil || pod.UID != stays.UID {
		t.Errorf("the backend has lost pod stays: it has %v", pod)
	}
	w.createdOnce([]string{"graceful", "forced", "stays"})
	for name, want := range map[string]int{"graceful": 1, "forced": 1, "stays": 0} {
		if got := w.backend.Count("delete " + w.key(name)); got != want {
			t.Errorf("DeletePod was called %d times for pod %s, want %d", got, name, want)
		}
	}
}
