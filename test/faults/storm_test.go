// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultproxy"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
)

// TestFault15StormOfRefusals answers nine requests of ten with 429 while all pods change. Of the lease requests
// it refuses every second, because API servers have a priority level of their own for them.
func TestFault15StormOfRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const qps, burst = 20, 40
	w.opts = append(w.opts, limited(qps, burst))
	daemon := w.start()
	names := w.startMany("pod", 50)
	w.awaitReadyNode()
	w.awaitRenewal(time.Time{})

	began := time.Now()
	storm := func(share float64, on func(faultproxy.Request) bool) (calm func()) {
		return w.proxy.Inject(faultproxy.Fault{On: on, Share: share, Status: http.StatusTooManyRequests, RetryAfter: time.Second})
	}
	isLease := func(r faultproxy.Request) bool { return r.Resource == "leases" }
	calmLease := storm(0.5, isLease)
	calmRest := storm(0.9, func(r faultproxy.Request) bool { return !isLease(r) })
	lasts := inForm(22*time.Second, time.Minute) // longer than the gap that is allowed
	var n int32
	for ; time.Since(began) < lasts; n++ {
		w.restarts(names, n)
		w.sleep(100 * time.Millisecond)
	}
	stormy := time.Since(began)
	calmLease()
	calmRest()
	calmed := time.Now()
	w.pods.await(t, "the last status has arrived", func(pods []*corev1.Pod) bool { return all(pods, restarted(n-1)) })
	took := time.Since(calmed)
	w.awaitRenewal(calmed)
	gap := w.leaseGap(began)
	offered := w.proxy.Count(func(r faultproxy.Request) bool {
		return r.Resource == "pods" && r.Writes() && r.At.After(began) && r.At.Before(calmed)
	})
	if most := int(qps*stormy.Seconds()) + burst; offered > most {
		t.Errorf("%d writes of pods in %v, want at most %d (%d a second and %d at once)", offered, stormy, most, qps, burst)
	}
	if gap > maxLeaseGap {
		t.Errorf("the lease was not renewed for %v, want at most %v", gap, maxLeaseGap)
	}
	w.within("the last status after the storm", took, 10*time.Second)
	w.untouched(began)
	w.alive(daemon)
	refused := w.proxy.Count(func(r faultproxy.Request) bool { return r.Injected && r.At.After(began) })
	faultrow.Record(t, 15, fmt.Sprintf("429 with Retry-After 1 for 90 %% of all requests, 50 %% of those for the lease, for %v, %d times", lasts, refused),
		"longest lease gap %v, writes of pods %d in %v at %d QPS (burst %d), lost statuses 0, the last one after %v",
		gap.Round(time.Millisecond), offered, stormy.Round(time.Second), qps, burst, took.Round(time.Millisecond))
}
