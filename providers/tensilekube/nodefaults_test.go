// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultproxy"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
)

// TestOutagesBetweenClusters breaks the connection between complete nodes of a real upper cluster and a real
// lower cluster. No pod may be lost or run twice.
func TestOutagesBetweenClusters(t *testing.T) {
	t.Parallel()
	w, api := startWorker(t, testapi.Start(t)), testapi.New(t, testapi.Options{NoScheduler: true})
	all, under := 15, 40
	if faultrow.Long() {
		all, under = 50, 200
	}
	for _, b := range []breakage{
		{name: "429", fault: faultproxy.Fault{Status: http.StatusTooManyRequests, RetryAfter: time.Second}, says: "429"},
		{name: "500", fault: faultproxy.Fault{Status: http.StatusInternalServerError}, says: "500"},
		{name: "credential-expired", fault: faultproxy.Fault{Status: http.StatusUnauthorized}, says: "401"},
		{name: "every-second-fails", fault: faultproxy.Fault{Status: http.StatusInternalServerError, Share: 0.5}},
		{name: "slow", fault: faultproxy.Fault{Delay: 2 * time.Second}},
		{name: "stale-watch", fault: faultproxy.Fault{On: faultproxy.Watches, Silent: true}, lasts: 15 * time.Second},
	} {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, api, w)
			h.start()
			h.during(b, func() { h.create("web", all) }, func(r faultproxy.Request) bool { return r.Resource == "pods" || r.Resource == "namespaces" })
			h.untilSettled(all)
			if n := h.created(); n != all {
				t.Errorf("the lower API server made %d pods for %d", n, all)
			}
			b.says = "" // the node has already reported it
			h.during(b, func() { h.delete("web", all) }, faultproxy.Is("pods", "delete"))
			h.untilSettled(0)
		})
	}
	t.Run("restart", func(t *testing.T) {
		t.Parallel()
		newHome(t, api, w).restartUnder(under)
	})
	t.Run("removed", func(t *testing.T) {
		t.Parallel()
		newHome(t, api, w).removedThere()
	})
	t.Run("cut", func(t *testing.T) {
		t.Parallel()
		newHome(t, api, w).cutFor(cutLength())
	})
}

// breakage is a fault of requests.
type breakage struct {
	name  string
	fault faultproxy.Fault
	says  string        // the text in the node's condition meanwhile; "": the node may be Ready, and work goes on
	lasts time.Duration // at least
}

// during breaks the connection to the lower cluster while do runs. It waits until the breakage has hit a request
// that on selects, and until the node reports the breakage.
func (h *home) during(b breakage, do func(), on func(faultproxy.Request) bool) {
	h.Helper()
	remove := h.proxy.Inject(b.fault)
	defer remove()
	began := time.Now()
	h.proxy.CutWatches(nil)
	hit := func(r faultproxy.Request) bool { return r.At.After(began) && on(r) }
	do()
	if err := h.proxy.Await(h.Context(), 1, hit); err != nil {
		h.Fatal(err)
	}
	if b.says != "" {
		h.untilNotReady(b.says)
	}
	h.wait(b.lasts)
	remove()
	h.proxy.CutWatches(faultproxy.Watches)
}

// wait waits while a fault lasts.
func (h *home) wait(d time.Duration) {
	select {
	case <-time.After(d):
	case <-h.Context().Done():
	}
}

// created returns the number of pods that the lower API server has created.
func (h *home) created() int {
	return h.proxy.Count(func(r faultproxy.Request) bool {
		return faultproxy.Is("pods", "create")(r) && r.Subresource == "" && r.Status == http.StatusCreated && !r.Injected
	})
}

// restartUnder restarts the node while n pods run.
func (h *home) restartUnder(n int) {
	h.Helper()
	h.start()
	h.create("web", n)
	before := h.untilSettled(n)
	h.stop()
	began := time.Now()
	h.start()
	h.create("next", 1) // when it runs, the node has checked the existing pods
	after := h.untilSettled(n + 1)
	h.same(before, after)
	made := map[string]int{"pods": 1, "secrets": 1} // the objects of the new pod
	for _, r := range h.proxy.Requests(faultproxy.Writes) {
		if r.At.Before(began) {
			continue
		}
		if made[r.Resource]--; r.Verb != "create" || made[r.Resource] < 0 {
			h.Errorf("the restart wrote to the lower cluster: %s %s", r.Verb, r.Path)
		}
	}
	if made := h.created(); made != n+1 {
		h.Errorf("the lower API server made %d pods for %d", made, n+1)
	}
	h.delete("web", n)
	h.delete("next", 1)
	h.untilSettled(0)
}

// cutLength returns the duration of a cut between the two clusters.
func cutLength() time.Duration {
	if faultrow.Long() {
		return 10 * time.Minute
	}
	return 15 * time.Second
}

// cutFor lets no packet pass for a while, during which pods come and go at home.
func (h *home) cutFor(length time.Duration) {
	h.Helper()
	const stay, leave, come = 20, 10, 10
	h.start()
	h.create("stays", stay)
	h.create("leaves", leave)
	before := h.untilSettled(stay + leave)
	h.proxy.Blackhole()
	defer h.proxy.Heal()
	began := time.Now()
	h.create("comes", come)
	h.delete("leaves", leave)
	h.untilNotReady("")
	h.wait(length - time.Since(began))
	pods, err := h.api.Client.CoreV1().Pods(h.ns).List(h.Context(), metav1.ListOptions{})
	if err != nil {
		h.Fatal(err)
	}
	for _, pod := range pods.Items {
		if strings.HasPrefix(pod.Name, "comes") == (pod.Status.Phase == corev1.PodRunning) {
			h.Errorf("while the network is cut %s is %s", pod.Name, pod.Status.Phase)
		}
	}
	if len(pods.Items) != stay+leave+come {
		h.Errorf("while the network is cut there are %d pods, want %d: nobody can know what has ended", len(pods.Items), stay+leave+come)
	}
	h.proxy.Heal()
	after := h.untilSettled(stay + come)
	for i := range leave {
		delete(before, fmt.Sprintf("leaves-%d", i))
	}
	h.same(before, after)
	if made := h.created(); made != stay+leave+come {
		h.Errorf("the lower API server made %d pods for %d", made, stay+leave+come)
	}
	h.untilReady()
}
