// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestProgramIsKilled kills the real program while pods come, and again while they go.
func TestProgramIsKilled(t *testing.T) {
	t.Parallel()
	const n = 40
	w := newWorld(t)
	credentials := w.api.NodeCredentials(t, w.nodeName)
	first := w.startProgram("127.0.0.1", credentials)
	names := numbered("pod", n)
	created := make(chan error, 1)
	go func() { created <- forEach(names, w.tryCreate) }()
	w.awaitPods("a quarter of the pods run", func(pods []*corev1.Pod) bool { return count(pods, running) >= n/4 })
	first.kill()
	second := w.startProgram("127.0.0.1", credentials)
	if err := <-created; err != nil {
		t.Fatal(err)
	}
	for _, pod := range w.awaitRunning(n) {
		if restarts := pod.Status.ContainerStatuses[0].RestartCount; restarts != 0 {
			t.Errorf("the container of pod %s was restarted %d times", pod.Name, restarts)
		}
	}

	removed := make(chan error, 1)
	go func() { removed <- forEach(names, w.tryRemove) }()
	w.awaitPods("a quarter of the pods are gone", func(pods []*corev1.Pod) bool { return len(pods) <= n*3/4 })
	second.kill()
	w.startProgram("127.0.0.1", credentials)
	if err := <-removed; err != nil {
		t.Fatal(err)
	}
	w.awaitNoPods()
}

func count[T any](list []T, is func(T) bool) (n int) {
	for _, e := range list {
		if is(e) {
			n++
		}
	}
	return n
}
