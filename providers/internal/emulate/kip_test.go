// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

// heldPod runs the agent of an instance for its pod.
type heldPod struct {
	mu       sync.Mutex
	stop     *podjob.Stop    // guarded by mu
	statuses []podjob.Status // guarded by mu
}

func (*heldPod) Claim(context.Context) error { return nil }

func (*heldPod) Bundle(context.Context) (podjob.Bundle, error) {
	return podjob.Bundle{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}}, nil
}

func (h *heldPod) WriteStatus(_ context.Context, s podjob.Status) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.statuses = append(h.statuses, s)
	return nil
}

func (h *heldPod) StopOrder(context.Context) (*podjob.Stop, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stop, nil
}

func (h *heldPod) lastStatus() podjob.Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.statuses) == 0 {
		return podjob.Status{}
	}
	return h.statuses[len(h.statuses)-1]
}

// TestPodOfAnInstanceRunsAtTheRunner: the agent gets the status of the pod while it runs, and a last one when the pod ends by itself, by an order, or with
// its instance. The journal names the instance.
func TestPodOfAnInstanceRunsAtTheRunner(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(s *simulated, h *heldPod, wake chan struct{}, cancel context.CancelFunc)
		want  podjob.Status
		noted string
	}{
		"by itself": {
			func(s *simulated, _ *heldPod, _ chan struct{}, _ context.CancelFunc) {
				s.endContainers("i-1", func(id string) string { return id })
			},
			podjob.Status{Pod: corev1.PodStatus{Phase: corev1.PodSucceeded}, Ended: true}, "began i-1, ended i-1, gone i-1",
		},
		"by an order": {
			func(s *simulated, h *heldPod, wake chan struct{}, _ context.CancelFunc) {
				wake <- struct{}{} // without an order, the pod continues
				time.Sleep(2 * stopsAfter)
				s.note("ordered", "i-1")
				h.mu.Lock()
				h.stop = &podjob.Stop{}
				h.mu.Unlock()
				wake <- struct{}{}
			},
			podjob.Status{Pod: corev1.PodStatus{Phase: corev1.PodFailed}, Ended: true, Stopped: true}, "began i-1, ordered i-1, gone i-1",
		},
		"with its instance": {
			func(_ *simulated, _ *heldPod, _ chan struct{}, cancel context.CancelFunc) { cancel() },
			podjob.Status{Pod: corev1.PodStatus{Phase: corev1.PodRunning}}, "began i-1, gone i-1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var noted []string
				var pods *cells
				s := newSimulated(func(pod *corev1.Pod) { pods.takeReport(pod) }, func(what, id string) { noted = append(noted, what+" "+id) })
				pods = &cells{jobs: newJobs(s)}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				h, wake, ended := &heldPod{}, make(chan struct{}), make(chan struct{})
				go func() {
					defer close(ended)
					_ = pods.runPod(ctx, "i-1", podjob.Config{Host: h, Wake: wake})
				}()
				time.Sleep(startsAfter)
				synctest.Wait()
				if got := h.lastStatus(); got.Pod.Phase != corev1.PodRunning || got.Ended {
					t.Errorf("the status of the running pod is %+v", got)
				}
				c.end(s, h, wake, cancel)
				<-ended
				time.Sleep(stopsAfter)
				synctest.Wait()
				if got := h.lastStatus(); got.Pod.Phase != c.want.Pod.Phase || got.Ended != c.want.Ended || got.Stopped != c.want.Stopped {
					t.Errorf("the last status is %+v, want %+v", got, c.want)
				}
				if got := strings.Join(noted, ", "); got != c.noted {
					t.Errorf("noted %s, want %s", got, c.noted)
				}
			})
		})
	}
}

// TestInstancesAreKnownByTheirPods: a start yields the instance and the name of its pod. Other requests, and refused ones, yield nothing.
func TestInstancesAreKnownByTheirPods(t *testing.T) {
	const start = "Action=RunInstances&TagSpecification.1.Tag.1.Key=a&TagSpecification.1.Tag.1.Value=b&TagSpecification.1.Tag.2.Key=vk-name&TagSpecification.1.Tag.2.Value=web"
	const answer = "<RunInstancesResponse><instancesSet><item><instanceId>i-1</instanceId></item></instancesSet></RunInstancesResponse>"
	for _, c := range []struct{ body, answer, want string }{
		{start, answer, "i-1 web"}, {start, "<Response><Errors/></Response>", " "}, {"Action=DescribeInstances", answer, " "},
	} {
		if id, pod := kipMade(nil, []byte(c.body), []byte(c.answer)); id+" "+pod != c.want {
			t.Errorf("%s: %q %q, want %s", c.body, id, pod, c.want)
		}
	}
}

// TestOperationLeavesTheRequest: the operation of a request is known before and after the emulator has read the body.
func TestOperationLeavesTheRequest(t *testing.T) {
	const body = "Action=CreateTags&ResourceId.1=i-1"
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if got := ec2Operation(r) + ec2Operation(r); got != "CreateTagsCreateTags" {
		t.Errorf("before: %s", got)
	}
	if rest, err := io.ReadAll(r.Body); err != nil || string(rest) != body {
		t.Errorf("the body is %q, %v", rest, err)
	}
	r.Body = io.NopCloser(strings.NewReader(body))
	if err := r.ParseForm(); err != nil {
		t.Fatal(err)
	}
	if got := ec2Operation(r); got != "CreateTags" {
		t.Errorf("after: %q", got)
	}
}
