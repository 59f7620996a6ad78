// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultproxy"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestFault09OutageLosesNoStatus changes every pod's status while the API server refuses connections, and ends a
// quarter of the pods. Another client creates a pod meanwhile. No status is lost.
func TestFault09OutageLosesNoStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.opts = append(w.opts, limited(200, 200)) // the default allows fewer than a thousand statuses in ten seconds
	daemon := w.start()
	n, outage := inForm(200, 1000), inForm(10*time.Second, 5*time.Minute)
	names := w.startMany("pod", n)

	began := time.Now()
	w.proxy.Refuse()
	for i := range int32(3) {
		w.sleep(outage / 4)
		w.restarts(names, i+1)
	}
	ended := names[:n/4]
	for _, name := range ended {
		w.backend.Change(w.key(name), func(pod *corev1.Pod) { *pod = *memory.Ended(pod, 7) })
	}
	w.create(w.pod("new"))
	w.sleep(outage / 4)
	w.untouched(began)
	if err := w.proxy.Restore(); err != nil {
		t.Fatal(err)
	}
	healed := time.Now()

	w.pods.await(t, "all statuses of the outage have arrived", func(pods []*corev1.Pod) bool {
		arrived := 0
		for _, pod := range pods {
			if restarted(3)(pod) && (!contains(ended, pod.Name) || failedWith(pod, 7)) {
				arrived++
			}
		}
		return arrived == n
	})
	allTook := time.Since(healed)
	w.awaitPod("new", "runs", running)
	newTook := time.Since(healed)
	writes := w.proxy.Requests(func(r faultproxy.Request) bool { return podWrite(r) && r.At.After(healed) })
	if len(writes) == 0 {
		t.Fatal("no write after the outage is on record")
	}
	firstTook := writes[0].At.Sub(healed)

	w.within("the first write after the outage", firstTook, 2*time.Second)
	w.within("the arrival of all statuses", allTook, 10*time.Second)
	w.within("the start of the pod that was created meanwhile", newTook, 10*time.Second)
	w.untouched(began, "new")
	w.createdOnce(append(names, "new"))
	w.alive(daemon)
	faultrow.Record(t, 9, fmt.Sprintf("connections refused for %v, %d pods whose statuses change four times meanwhile", outage, n),
		"first write after %v, all %d statuses after %v, a new pod after %v, calls of the backend %d",
		firstTook.Round(time.Millisecond), n, allTook.Round(time.Millisecond), newTook.Round(time.Millisecond), len(w.calls.since(began, "update", "delete")))
}

// failedWith reports whether a pod failed with the given exit code of its only container.
func failedWith(pod *corev1.Pod, code int32) bool {
	state := pod.Status.ContainerStatuses[0].State.Terminated
	return pod.Status.Phase == corev1.PodFailed && state != nil && state.ExitCode == code
}

// TestFault10DownAtStart starts the daemon before there is an API server.
func TestFault10DownAtStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.proxy.Refuse()
	daemon := w.launch()
	down := inForm(8*time.Second, 5*time.Minute)
	w.sleep(down)
	w.create(w.pod("waits")) // not earlier: a pod of a missing node is soon removed
	w.alive(daemon)
	select {
	case <-daemon.Ready():
		t.Error("the node is ready without an API server")
	default:
	}
	w.untouched(time.Time{})
	if err := w.proxy.Restore(); err != nil {
		t.Fatal(err)
	}
	healed := time.Now()
	w.nodes.awaitOne(t, "the node is ready", nodeReady)
	readyTook := time.Since(healed)
	w.awaitPod("waits", "runs", running)
	runsTook := time.Since(healed)
	w.within("Ready after the API server came", readyTook, 5*time.Second)
	w.within("the start of the pod after that", runsTook, 10*time.Second)
	w.alive(daemon)
	w.createdOnce([]string{"waits"})
	faultrow.Record(t, 10, fmt.Sprintf("connections refused for the first %v of the daemon's life, once", down),
		"stays up, Ready after %v, the pod that waits runs after %v", readyTook.Round(time.Millisecond), runsTook.Round(time.Millisecond))
}
