// SPDX-License-Identifier: Apache-2.0

//go:build linux

package azurebatch

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob/podblobs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestRequestsOfLife: a pod needs three requests of its own. Stop orders and removals of blobs are requests for many pods.
func TestRequestsOfLife(t *testing.T) {
	t.Parallel()
	const pods = 30
	s := newStill()
	pool := aPool()
	pool.Slots = pods
	h := newHome(t, pool, 1, s)
	s.put = h.cloud.Store.PutWith
	h.pace.look = 3 * time.Second // all pods must stop within a second
	d, _ := h.start()
	var all []*corev1.Pod
	for i := range pods {
		pod := h.Pod("default", fmt.Sprintf("pod-%d", i), program.Program{})
		pod.Spec.ServiceAccountName, pod.Spec.TerminationGracePeriodSeconds = "", new(int64(1))
		h.Create(d.kit, pod)
		all = append(all, pod)
	}
	for _, pod := range all {
		h.UntilRuns(d.kit, pod)
	}
	for _, pod := range all {
		h.Delete(d.kit, pod)
	}
	for _, pod := range all {
		h.Until("it has the order to stop", func() (bool, string) {
			_, has := h.cloud.Store.Metadata(podblobs.BundleName(d.job, pod.UID))
			return !has, "its bundle is there"
		})
		if err := s.write(d.job, pod.UID, podjob.Status{Ended: true, Pod: corev1.PodStatus{Phase: corev1.PodFailed}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, pod := range all {
		h.UntilGone(d.kit, pod)
	}
	h.Until("nothing of them is left", func() (bool, string) {
		left := len(h.cloud.Tasks()) + len(h.cloud.Store.Names("vk-"))
		return left == 0, fmt.Sprint(left)
	})
	counts, sum := map[string]int{}, 0
	for _, r := range h.cloud.front.Requests() {
		if !strings.HasPrefix(r.Operation, "List") { // one for each interval
			counts[r.Operation]++
			sum++
		}
	}
	own := maps.Clone(counts)
	maps.DeleteFunc(own, func(_ string, n int) bool { return n < pods })
	if want := map[string]int{"PutBlob": pods + 1, "CreateTask": pods + 1, "DeleteTask": pods}; !maps.Equal(own, want) || sum > 3*pods+20 {
		t.Errorf("%d pods took %d requests: %v; want three a pod, %v, and 20 for all", pods, sum, counts, want)
	}
}

// TestRequestsAtRest: while nothing changes, one list of blobs has the statuses of all pods. Lists of tasks are rarer, and there are no other
// requests.
func TestRequestsAtRest(t *testing.T) {
	t.Parallel()
	const pods = 20
	s := newStill()
	pool := aPool()
	pool.Slots = pods
	h := newHome(t, pool, 1, s)
	s.put = h.cloud.Store.PutWith
	h.pace.list, h.pace.sweep = time.Hour, time.Hour
	d, _ := h.start()
	for i := range pods {
		pod := h.Pod("default", fmt.Sprintf("pod-%d", i), program.Program{})
		pod.Spec.ServiceAccountName = ""
		h.Create(d.kit, pod)
		h.UntilRuns(d.kit, pod)
	}
	lists := len(h.cloud.front.Requests("ListBlobs"))
	before := len(h.cloud.front.Requests())
	h.Until("statuses are read", func() (bool, string) {
		got := len(h.cloud.front.Requests("ListBlobs")) - lists
		return got >= 30, fmt.Sprint(got)
	})
	lists = len(h.cloud.front.Requests("ListBlobs")) - lists
	others := map[string]int{}
	for _, r := range h.cloud.front.Requests()[before:] {
		if r.Operation != "ListBlobs" {
			others[r.Operation]++
		}
	}
	tasks := others["ListTasks"] // 3 pages; one list is due when lists show all pods of an earlier process
	if delete(others, "ListTasks"); tasks > 6 || len(others) > 0 {
		t.Errorf("beside %d lists of statuses there were %d pages of lists of tasks and %v, want 6 pages", lists, tasks, others)
	}
}

// TestStopGivesGracePeriod: a stop order has the grace period of the pod's spec or another one. In the first case, it is one request for many pods.
func TestStopGivesGracePeriod(t *testing.T) {
	for name, c := range map[string]struct{ own, asked int64 }{"its own": {61, 61}, "another one": {1, 62}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, aPool(), 1, nil)
			d, _ := h.start()
			file := outside(t)
			pod := h.shell("graceful", `trap 'read -r line <`+file+`.go; echo "$line" >`+file+`; exit' TERM; mkfifo `+file+`.go; echo up >`+file+`; while true; do sleep 0.1; done`)
			pod.Spec.TerminationGracePeriodSeconds = &c.own
			h.Create(d.kit, pod)
			wrote := func(want string) {
				t.Helper()
				h.Until("the container has written "+want, func() (bool, string) {
					text, err := os.ReadFile(file)
					return string(text) == want+"\n", fmt.Sprintf("%q, %v", text, err)
				})
			}
			wrote("up")
			stopped := pod.DeepCopy()
			stopped.DeletionTimestamp, stopped.DeletionGracePeriodSeconds = new(metav1.Now()), &c.asked
			if err := d.kit.DeletePod(t.Context(), stopped); err != nil {
				t.Fatal(err)
			}
			go func() { _ = os.WriteFile(file+".go", []byte("late\n"), 0o600) }() // it waits for the signal
			wrote("late")
			h.UntilGone(d.kit, pod)
			orders := len(h.cloud.front.Requests("SetBlobMetadata"))
			if (orders == 0) != (c.own == c.asked) {
				t.Errorf("it got %d orders of its own", orders)
			}
		})
	}
}
