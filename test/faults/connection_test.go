// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultproxy"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
)

// TestFault16SlowAPIKeepsTheNodeReady lets every request take seconds.
func TestFault16SlowAPIKeepsTheNodeReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	daemon := w.start()
	names := w.startMany("pod", 10)
	w.awaitReadyNode()
	began := time.Now()
	const delay = 5 * time.Second
	remove := w.proxy.Inject(faultproxy.Fault{Delay: delay})
	lasts := inForm(22*time.Second, 3*time.Minute)
	var n int32
	for ; time.Since(began) < lasts; n++ {
		w.restarts(names, n)
		w.sleep(time.Second)
	}
	gap, flaps := w.leaseGap(began), w.readyFlaps(began)
	remove()
	w.pods.await(t, "the last status has arrived", func(pods []*corev1.Pod) bool { return all(pods, restarted(n-1)) })
	if flaps > 0 {
		t.Errorf("the node was not ready %d times", flaps)
	}
	if gap > maxLeaseGap {
		t.Errorf("the lease was not renewed for %v, want at most %v", gap, maxLeaseGap)
	}
	w.untouched(began)
	w.alive(daemon)
	faultrow.Record(t, 16, fmt.Sprintf("every request takes %v longer, for %v", delay, lasts),
		"Ready flaps %d, longest lease gap %v, lost statuses 0", flaps, gap.Round(time.Millisecond))
}

func (w *world) awaitReadyNode() {
	w.Helper()
	w.nodes.awaitOne(w.T, "the node is ready", nodeReady)
}

// TestFault17BlackholeIsForgottenSoon: all packets vanish without an error. The daemon leaves the backend alone
// meanwhile, and recovers soon after packets arrive again.
func TestFault17BlackholeIsForgottenSoon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	daemon := w.start()
	names := w.startMany("pod", 20)
	began := time.Now()
	w.proxy.Blackhole()
	lasts := inForm(15*time.Second, 90*time.Second)
	w.sleep(lasts / 2)
	w.restarts(names, 1)
	w.create(w.pod("new"))
	w.sleep(lasts / 2)
	w.restarts(names[:10], 2)
	w.untouched(began)
	w.proxy.Heal()
	healed := time.Now()

	w.pods.await(t, "all statuses have arrived", func(pods []*corev1.Pod) bool {
		arrived := 0
		for _, pod := range pods {
			if contains(names[:10], pod.Name) && restarted(2)(pod) || contains(names[10:], pod.Name) && restarted(1)(pod) {
				arrived++
			}
		}
		return arrived == len(names)
	})
	statuses := time.Since(healed)
	w.awaitPod("new", "runs", running)
	starts := time.Since(healed)
	lease := w.awaitRenewal(healed).Sub(healed)
	w.within("the statuses after the hole", statuses, 10*time.Second)
	w.within("the start of a pod after it", starts, 10*time.Second)
	w.within("the renewal of the lease after it", lease, 10*time.Second)
	w.awaitReadyNode()
	w.untouched(began, "new")
	w.createdOnce(append(names, "new"))
	w.alive(daemon)
	faultrow.Record(t, 17, fmt.Sprintf("all packets vanish for %v, no connection is closed", lasts),
		"after it: statuses in %v, a new pod in %v, the lease in %v, calls of the backend 0",
		statuses.Round(time.Millisecond), starts.Round(time.Millisecond), lease.Round(time.Millisecond))
}
