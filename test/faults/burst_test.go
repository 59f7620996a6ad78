// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultproxy"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// TestFault33BurstOfSpecUpdates changes one pod's spec as fast as the API server takes it.
func TestFault33BurstOfSpecUpdates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.startMany("pod", 1)
	const updates = 500
	began := time.Now()
	for i := 1; i <= updates; i++ {
		body := fmt.Sprintf(`{"spec":{"containers":[{"name":"main","image":"example.test/image:%d"}]}}`, i+1)
		if _, err := w.podClient().Patch(t.Context(), "pod-0000", types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	ended := time.Now()
	pod := w.awaitPod("pod-0000", "is observed at its last generation", func(pod *corev1.Pod) bool {
		return pod.Generation == updates+1 && pod.Status.ObservedGeneration == pod.Generation
	})
	took := time.Since(ended)
	w.within("observedGeneration after the last update", took, 10*time.Second)
	got, want := w.backend.Has(w.key("pod-0000")).Spec.Containers[0].Image, pod.Spec.Containers[0].Image
	if got != want {
		t.Errorf("image at the backend: got %s, want %s", got, want)
	}
	w.createdOnce([]string{"pod-0000"})
	faultrow.Record(t, 33, fmt.Sprintf("%d updates of the spec of one pod in %v", updates, ended.Sub(began).Round(time.Millisecond)),
		"observedGeneration %d %v after the last one, calls of UpdatePod %d", pod.Status.ObservedGeneration,
		took.Round(time.Millisecond), len(w.calls.since(began, "update")))
}

// TestFault34HugePods runs pods of the largest size that the API server accepts.
func TestFault34HugePods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	n := inForm(20, 500)
	before := heap()
	names := numbered("huge", n)
	w.forEach(names, func(name string) error {
		_, err := w.podClient().Create(t.Context(), huge(w.pod(name)), metav1.CreateOptions{})
		return err
	})
	w.awaitRunning(n)
	growth := int64(heap()-before) / int64(n)

	const rounds = 5
	began := time.Now()
	var delays []time.Duration
	for i := int32(1); i <= rounds; i++ {
		changed := time.Now()
		w.restarts(names, i)
		w.pods.await(t, "the statuses arrive", func(pods []*corev1.Pod) bool { return all(pods, restarted(i)) })
		delays = append(delays, time.Since(changed))
	}
	writes := w.proxy.Requests(func(r faultproxy.Request) bool { return podWrite(r) && r.At.After(began) })
	var sent int64
	for _, r := range writes {
		sent = max(sent, r.Length)
	}
	if len(writes) < n {
		t.Errorf("%d writes of %d pods, so this test shows nothing", len(writes), n)
	}
	if sent > 128<<10 {
		t.Errorf("a status of a huge pod was written with %d bytes, want at most 128 KiB: no spec", sent)
	}
	if most := int64(24 << 20); growth > most { // in the API server's views, the daemon's cache and the backend
		t.Errorf("the heap grew by %d KiB for a pod, want at most %d", growth>>10, most>>10)
	}
	w.within("the statuses of all huge pods", percentile(delays, 0.99), 5*time.Second)
	w.createdOnce(names)
	faultrow.Record(t, 34, fmt.Sprintf("%d pods of 1 MiB: 100 containers, 256 KiB of annotations", n),
		"heap of the whole test %d KiB a pod, largest status write %d KiB, statuses of all pods in %v at most",
		growth>>10, sent>>10, percentile(delays, 1).Round(time.Millisecond))
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// huge makes a pod about 1 MiB large.
func huge(pod *corev1.Pod) *corev1.Pod {
	pod.Annotations = map[string]string{"example.test/blob": strings.Repeat("a", 255<<10)}
	pod.Spec.Containers = nil
	for i := range 100 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: fmt.Sprintf("container-%d", i), Image: "example.test/image:1",
			Env: []corev1.EnvVar{{Name: "BLOB", Value: strings.Repeat("b", 7<<10)}},
		})
	}
	return pod
}

// TestFault35ManyPodsEndAtOnce ends all pods of a node in one second.
func TestFault35ManyPodsEndAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const qps, burst = 50, 100
	w.opts = append(w.opts, limited(qps, burst))
	daemon := w.start()
	n := inForm(500, 5000)
	names := w.startMany("job", n)
	w.awaitReadyNode()
	w.awaitRenewal(time.Time{})

	began := time.Now()
	for _, name := range names {
		w.backend.Change(w.key(name), func(pod *corev1.Pod) { *pod = *memory.Ended(pod, 0) })
	}
	w.pods.await(t, "all pods have succeeded", func(pods []*corev1.Pod) bool {
		return all(pods, func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded })
	})
	took := time.Since(began)
	w.awaitRenewal(time.Now())
	gap := w.leaseGap(began)
	w.within("the arrival of all ends", took, time.Duration(n)*time.Second/qps+5*time.Second)
	if gap > maxLeaseGap {
		t.Errorf("the lease was not renewed for %v, want at most %v", gap, maxLeaseGap)
	}
	w.untouched(began)
	w.alive(daemon)
	faultrow.Record(t, 35, fmt.Sprintf("%d pods end at once, %d QPS", n, qps),
		"all visible after %v, longest lease gap %v", took.Round(time.Millisecond), gap.Round(time.Millisecond))
}
