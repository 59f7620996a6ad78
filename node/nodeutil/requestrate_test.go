// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
)

// apiLatency is the response time of the API server in these tests.
const apiLatency = 5 * time.Millisecond

// writersOfPods is the greatest number of concurrent writes of pods by a node; see node.PodController.
const writersOfPods = 32

// remoteAPI is an API server without a network. It answers each request with an empty object, or refuses the
// request if refuse returns true.
type remoteAPI struct {
	refuse   func(nth int64) bool // nil refuses no request
	requests atomic.Int64
}

func (a *remoteAPI) RoundTrip(req *http.Request) (*http.Response, error) {
	time.Sleep(apiLatency)
	resp := &http.Response{
		StatusCode: http.StatusOK, Request: req, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(`{"kind":"Pod","apiVersion":"v1"}`)),
	}
	if nth := a.requests.Add(1); a.refuse != nil && a.refuse(nth) {
		resp.StatusCode = http.StatusTooManyRequests
		resp.Header.Set("Retry-After", "1")
	}
	return resp, nil
}

// clients returns the clients of a node with the configuration.
func (a *remoteAPI) clients(t *testing.T, cfg NodeConfig) *clients {
	t.Helper()
	asItIs := func(cfg *rest.Config) (*rest.Config, error) { return cfg, nil }
	c, err := clientsOf(&cfg, &rest.Config{Host: "http://api.example", Transport: a}, asItIs)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// each calls do for the numbers below n, with as many calls at a time as a node writes pods. It returns the time
// that all calls took.
func each(n int, do func(i int)) time.Duration {
	began := time.Now()
	work := make(chan int)
	var wg sync.WaitGroup
	for range writersOfPods {
		wg.Go(func() {
			for i := range work {
				do(i)
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	wg.Wait()
	return time.Since(began)
}

// writePod writes the status of a pod.
func writePod(t *testing.T, c *clients, i int) {
	t.Helper()
	body := []byte(`{"status":{"phase":"Succeeded"}}`)
	if _, err := c.main.CoreV1().Pods("d").Patch(t.Context(), fmt.Sprint("p", i), types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status"); err != nil {
		t.Error(err)
	}
}

// TestFault35EndsOfPodsDoNotWaitForTheClient: when 2,000 pods end at once, their status writes wait for the API
// server only, not for a limit of the client.
func TestFault35EndsOfPodsDoNotWaitForTheClient(t *testing.T) {
	const n = 2000
	synctest.Test(t, func(t *testing.T) {
		c := new(remoteAPI).clients(t, NodeConfig{})
		took := each(n, func(i int) { writePod(t, c, i) })
		if most := 2 * n * apiLatency / writersOfPods; took > most {
			t.Errorf("%d writes took %v, want at most %v", n, took, most)
		}
		faultrow.Record(t, 35, fmt.Sprintf("%d pods finish at once, the client as it comes, an API server that answers after %v", n, apiLatency), "all visible after %v", took)
	})
}

// TestReadsForPodsDoNotWaitForTheClient: 1,000 pods come at once, each with a Secret of its own. For each
// Secret, the node requests an access review and reads the Secret. No limit of the client delays these requests.
func TestReadsForPodsDoNotWaitForTheClient(t *testing.T) {
	const n = 1000
	synctest.Test(t, func(t *testing.T) {
		c := new(remoteAPI).clients(t, NodeConfig{})
		took := each(2*n, func(i int) {
			if _, err := c.watches.CoreV1().Pods("d").Get(t.Context(), fmt.Sprint("s", i), metav1.GetOptions{}); err != nil {
				t.Error(err)
			}
		})
		if most := 2 * 2 * n * apiLatency / writersOfPods; took > most {
			t.Errorf("%d reads took %v, want at most %v", 2*n, took, most)
		}
	})
}

// TestFault15RefusedWritesAreSlowAtTheDefaultRate: an API server that protects itself sets the pace, however
// fast the client may be. The API server refuses nine writes of ten for a minute, and the client returns at the
// time that each refusal names.
func TestFault15RefusedWritesAreSlowAtTheDefaultRate(t *testing.T) {
	const storm = time.Minute
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var offered atomic.Int64
		api := &remoteAPI{refuse: func(nth int64) bool {
			if time.Since(began) > storm {
				return false
			}
			offered.Add(1)
			return nth%10 != 0
		}}
		c := api.clients(t, NodeConfig{})
		const n = 1000
		took := each(n, func(i int) {
			for time.Since(began) < 2*storm { // the pod controller retries until the write succeeds
				_, err := c.main.CoreV1().Pods("d").Patch(t.Context(), fmt.Sprint("p", i), types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{}, "status")
				if err == nil {
					return
				}
			}
			t.Errorf("the write of pod %d has not arrived after %v", i, 2*storm)
		})
		// The API server refuses each writer once a second. One of ten writes gets through, and its writer takes
		// the next pod at once. client-go gives up after ten retries, without another wait. So up to one of
		// eleven waits is left out.
		most := int64(float64(writersOfPods) * (storm.Seconds() + 1) * 10 / 9 * 11 / 10)
		if got := offered.Load(); got > most {
			t.Errorf("%d writes in the %v of the storm, want at most %d", got, storm, most)
		}
		if took > storm+5*time.Second {
			t.Errorf("the last write arrived after %v", took)
		}
		faultrow.Record(t, 15, fmt.Sprintf("429 with Retry-After 1 for 90 %% of all writes of %d pods for %v, the client as it comes", n, storm),
			"writes offered %.1f a second, lost 0, the last one after %v", float64(offered.Load())/storm.Seconds(), took.Round(time.Millisecond))
	})
}

// TestHeartbeatsAndEventsHaveLimitsOfTheirOwn: heartbeats and events go on when writes of pods have used up the
// client's limit.
func TestHeartbeatsAndEventsHaveLimitsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(remoteAPI).clients(t, NodeConfig{KubeAPIQPS: 0.01, KubeAPIBurst: 1})
		writePod(t, c, 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.main.CoreV1().Pods("d").Get(ctx, "p", metav1.GetOptions{}); err == nil {
			t.Error("the limit that was set is not kept")
		}
		for name, send := range map[string]func() error{
			"lease": func() error { _, err := c.leases.Get(t.Context(), "n", metav1.GetOptions{}); return err },
			"node":  func() error { _, err := c.nodes.Get(t.Context(), "n", metav1.GetOptions{}); return err },
			"event": func() error { _, err := c.events.Events("d").Get(t.Context(), "e", metav1.GetOptions{}); return err },
		} {
			began := time.Now()
			const n = besidesBurst / 2 // nodes and leases share one limit
			for range n {
				if err := send(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if took := time.Since(began); took != n*apiLatency {
				t.Errorf("%s: %d took %v, want %v", name, n, took, n*apiLatency)
			}
		}
		if got := c.events.(corev1client.CoreV1Interface).RESTClient().GetRateLimiter().QPS(); got != besidesQPS {
			t.Errorf("events: %v a second, want %d", got, besidesQPS)
		}
	})
}
