// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultproxy"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
)

// gap cuts the watch of the pods, calls meanwhile, and answers the next watch with 410, so that the daemon must
// list. It returns the time when the daemon could read pods again.
func (w *world) gap(meanwhile func()) (healed time.Time) {
	w.Helper()
	blind := func(r faultproxy.Request) bool {
		return r.Resource == "pods" && (r.Verb == "list" || r.Verb == "watch")
	}
	see := w.proxy.Inject(faultproxy.Fault{On: blind, Status: http.StatusServiceUnavailable})
	if n := w.proxy.CutWatches(faultproxy.Is("pods")); n == 0 {
		w.Error("the daemon does not watch the pods, so this test shows nothing")
	}
	meanwhile()
	expired := w.proxy.Inject(faultproxy.Fault{On: faultproxy.Is("pods", "watch"), Status: http.StatusGone})
	healed = time.Now()
	see()
	w.awaitRequests(1, func(r faultproxy.Request) bool {
		return r.Verb == "watch" && r.Resource == "pods" && r.Status == http.StatusGone
	})
	expired()
	return healed
}

// awaitRequests waits until the daemon has made n requests for which keep returns true.
func (w *world) awaitRequests(n int, keep func(faultproxy.Request) bool) {
	w.Helper()
	if err := w.proxy.Await(w.Context(), n, keep); err != nil {
		w.Fatalf("wait for %d requests: %v", n, err)
	}
}

// TestFault12DeletionLostInAWatchGap: pods are deleted while the daemon cannot watch them. Their instances are
// stopped afterwards.
func TestFault12DeletionLostInAWatchGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	names := w.startMany("pod", 30)
	lost, kept := names[:5], names[5:]
	began := time.Now()
	healed := w.gap(func() { w.removeMany(lost, atOnce()) })
	w.calls.await(t, "the backend was asked to delete the pods", func() bool { return len(w.calls.since(began, "delete")) >= len(lost) })
	took := time.Since(healed)
	w.within("the deletion of the pods at the backend", took, 5*time.Second)
	for _, c := range w.calls.since(began, "create", "update", "delete") {
		if c.verb != "delete" || !contains(lost, c.name) {
			t.Errorf("the backend was asked to %s pod %s", c.verb, c.name)
		}
	}
	for _, name := range lost {
		if w.backend.Has(w.key(name)) != nil {
			t.Errorf("the backend still has pod %s", name)
		}
	}
	w.awaitRunning(len(kept))
	faultrow.Record(t, 12, "5 of 30 pods deleted while the watch was cut, then 410 for the watch",
		"orphans gone at the backend %v after the gap, other pods touched 0", took.Round(time.Millisecond))
}

// TestFault13SameNameAcrossAWatchGap: pods are replaced by pods with the same names while the daemon cannot
// watch them.
func TestFault13SameNameAcrossAWatchGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const stop = 500 * time.Millisecond
	w.backend.StopTime = stop
	w.start()
	names := w.startMany("set", 5)
	old := map[string]types.UID{}
	for _, pod := range w.pods.list() {
		old[pod.Name] = pod.UID
	}
	healed := w.gap(func() {
		w.removeMany(names, atOnce())
		w.forEach(names, func(name string) error {
			w.create(w.pod(name))
			return nil
		})
	})
	w.pods.await(t, "the new pods run", func(pods []*corev1.Pod) bool {
		return len(pods) == len(names) && all(pods, func(pod *corev1.Pod) bool { return pod.UID != old[pod.Name] && running(pod) })
	})
	took := time.Since(healed)
	w.within("the start of the new pods", took, stop+5*time.Second)

	foreign := 0
	owner := map[string]types.UID{} // of a container: the first pod that showed it
	for _, v := range w.pods.history(time.Time{}) {
		for _, c := range v.Of.Status.ContainerStatuses {
			if first, known := owner[c.ContainerID]; known && c.ContainerID != "" && first != v.Of.UID {
				foreign++
				t.Errorf("pod %s with UID %s shows container %s of UID %s", v.Of.Name, v.Of.UID, c.ContainerID, first)
			} else {
				owner[c.ContainerID] = v.Of.UID
			}
		}
	}
	for _, name := range names {
		if order := w.callsOf(name, old[name]); order != "create old, delete old, create new" {
			t.Errorf("calls for pod %s: got %q", name, order)
		}
	}
	faultrow.Record(t, 13, "5 pods replaced by others of the same names while the watch was cut, then 410 for the watch",
		"new pods run %v after the gap (a stop takes %v), statuses of the old ones on the new %d", took.Round(time.Millisecond), stop, foreign)
}

// callsOf returns the order in which the backend got calls for the old and the new pod of a name.
func (w *world) callsOf(name string, old types.UID) string {
	var order []string
	for _, c := range w.calls.those(func(c call) bool { return c.name == name && c.verb != "update" }) {
		which := c.verb + " new"
		if c.uid == old {
			which = c.verb + " old"
		}
		if len(order) == 0 || order[len(order)-1] != which { // a stop may be asked for again
			order = append(order, which)
		}
	}
	return strings.Join(order, ", ")
}
