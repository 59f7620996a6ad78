// SPDX-License-Identifier: Apache-2.0

package stackpath

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// operations returns the number of requests of each operation.
func operations(h *home) map[string]int {
	all := map[string]int{}
	for _, r := range h.region.front.Requests() {
		all[r.Operation]++
	}
	return all
}

// TestRequestsOfALife: a pod needs a create, a lookup of its instance when the container should be running, and a delete. All other lookups stay
// within the budget, and lists within their rate.
func TestRequestsOfALife(t *testing.T) {
	inBubble(t, func(t *testing.T, h *home) {
		p, stop := h.start()
		defer stop()
		const n, every = 400, 75 * time.Millisecond
		begun := time.Now()
		var pods []*corev1.Pod
		for i := range n {
			pods = append(pods, h.Pod("default", fmt.Sprint("web-", i), stays()))
			h.Create(p, pods[i])
			time.Sleep(every)
		}
		for _, pod := range pods {
			h.Delete(p, pod)
			time.Sleep(every)
		}
		for _, pod := range pods {
			h.UntilGone(p, pod)
		}
		seconds, all := int(time.Since(begun).Seconds()), operations(h)
		if all["CreateWorkload"] != n || all["DeleteWorkload"] != n || all["GetWorkloadInstances"] > n+seconds+5 || all["GetWorkloads"] > seconds*2/3+5 {
			t.Errorf("%v for %d pods in %d s, want a look for each pod, and beside that a look each second and a list each 1.5 s", all, n, seconds)
		}
		if got := float64(len(h.region.front.Requests())) / n; got > 3.3 {
			t.Errorf("%.2f requests a life, want 3.3: %v", got, all)
		}
	})
}

// TestFirstLookWaitsForTheStart: a container needs seconds to start, so an earlier lookup is useless.
func TestFirstLookWaitsForTheStart(t *testing.T) {
	inBubble(t, func(t *testing.T, h *home) {
		p, stop := h.start()
		defer stop()
		pod := h.Pod("default", "web", stays())
		h.Create(p, pod)
		time.Sleep(lookAfterCreate - time.Millisecond)
		if all := operations(h); all["GetWorkloads"] < 3 || all["GetWorkloadInstances"] > 0 {
			t.Errorf("before the container should run: %v, want lists and no look", all)
		}
		time.Sleep(lookAfter)
		if got, err := p.GetPod(t.Context(), "default", "web"); err != nil || got.Status.Phase != corev1.PodRunning || operations(h)["GetWorkloadInstances"] != 1 {
			t.Errorf("after it: %v, %v, %v, want one look", got.Status.Phase, err, operations(h))
		}
	})
}

// TestRequestsAtRest: while nothing changes for ten minutes, there are only lists, and lookups within the budget.
func TestRequestsAtRest(t *testing.T) {
	inBubble(t, func(t *testing.T, h *home) {
		p, stop := h.start()
		defer stop()
		for i := range 100 {
			h.Create(p, h.Pod("default", fmt.Sprint("web-", i), stays()))
		}
		time.Sleep(5 * time.Minute)
		before := len(h.region.front.Requests())
		time.Sleep(10 * time.Minute)
		if n := len(h.region.front.Requests()) - before; n > 10*75 {
			t.Errorf("%d requests in 10 minutes, want 12 lists and 60 looks a minute: %v", n, operations(h))
		}
	})
}
