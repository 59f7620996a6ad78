// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// twoPods has a pod that restarts its containers, and a pod that does not.
const twoPods = `
apiVersion: v1
kind: Pod
metadata: {name: always}
spec:
  nodeName: NODE
  terminationGracePeriodSeconds: 1
  initContainers:
    - {name: sidecar, image: "busybox:1.36", restartPolicy: Always, command: ["sleep", "1000"]}
  containers:
    - {name: a, image: "busybox:1.36", command: ["sleep", "1000"], readinessProbe: {exec: {command: ["true"]}, periodSeconds: 1}}
    - {name: b, image: "busybox:1.36", command: ["sleep", "1000"]}
---
apiVersion: v1
kind: Pod
metadata: {name: never}
spec:
  nodeName: NODE
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
    - {name: c, image: "busybox:1.36", command: ["sleep", "1000"]}
`

const latePod = `
apiVersion: v1
kind: Pod
metadata: {name: late}
spec:
  nodeName: NODE
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: "busybox:1.36", command: ["sleep", "1000"]}]
`

// containers returns the IDs of all containers of the test's pods, by pod and name, and the sum of their
// restarts. It leaves out the late pod.
func (w *world) containers() (ids map[string]string, restarts int32) {
	w.Helper()
	list, err := w.api.Client.CoreV1().Pods(w.namespace).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	ids = map[string]string{}
	for _, p := range list.Items {
		if p.Name == "late" {
			continue
		}
		for _, s := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
			ids[p.Name+"/"+s.Name] = s.ContainerID
			restarts += s.RestartCount
			if s.State.Running == nil {
				ids[p.Name+"/"+s.Name] += " does not run"
			}
		}
	}
	return ids, restarts
}

// unchanged fails the test if the containers differ from before.
func (w *world) unchanged(before map[string]string) {
	w.Helper()
	after, restarts := w.containers()
	if restarts != 0 || !maps.Equal(before, after) {
		w.Errorf("containers after %d restarts: %v, want %v", restarts, after, before)
	}
}

func TestDaemonKilledUnderPods(t *testing.T) {
	w := newWorld(t)
	w.apply(twoPods)
	w.awaitPod("always", "is ready", ready)
	w.awaitPod("never", "is ready", ready)
	before, _ := w.containers()
	if len(before) != 4 {
		t.Fatalf("containers are %v, want four", before)
	}

	w.kill()
	w.apply(latePod) // when it runs, the new daemon has processed all pods
	w.start()
	w.awaitPod("late", "is ready", ready)
	w.awaitPod("always", "is ready", ready)
	w.unchanged(before)
	if got := w.do("exec", "never", "--", "echo", "here"); got != "here" {
		t.Errorf("exec in a pod of the killed daemon wrote %q", got)
	}
}

func TestContainerdRestartedUnderPods(t *testing.T) {
	w := newWorld(t)
	w.apply(twoPods)
	w.awaitPod("always", "is ready", ready)
	w.awaitPod("never", "is ready", ready)
	before, _ := w.containers()

	if err := w.runtime.Kill(); err != nil {
		t.Fatal(err)
	}
	w.apply(latePod)
	w.awaitPod("late", "is told that it waits", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodPending })
	w.unchanged(before)
	if err := w.runtime.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.awaitPod("late", "is ready", ready)
	w.awaitPod("always", "is ready", ready)
	w.unchanged(before)
	if got := w.do("exec", "never", "--", "echo", "here"); got != "here" {
		t.Errorf("exec after the restart of containerd wrote %q", got)
	}
}
