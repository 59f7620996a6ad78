// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
)

// TestGroupsAreSimulated checks that a group runs after a while, ends by itself on request, and is removed when it is stopped. Each event is recorded
// once, with a report.
func TestGroupsAreSimulated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fleet *emulator.Fleet
		var mu sync.Mutex
		var noted []string // guarded by mu
		begin := time.Now()
		s := newSimulated(func(pod *corev1.Pod) { fleet.Report(pod) }, func(what, id string) {
			mu.Lock()
			defer mu.Unlock()
			noted = append(noted, time.Since(begin).String()+" "+what+" "+id)
		})
		fleet = emulator.NewFleet(s, &emulator.Objects{}, 0)
		ctx := context.Background()
		for _, id := range []string{"stays", "ends", "early"} {
			spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}
			if err := fleet.Start(ctx, emulator.Group{ID: id, Spec: spec}); err != nil {
				t.Fatal(err)
			}
		}
		phase := func(id string) corev1.PodPhase {
			g, err := fleet.Get(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			return g.Status.Phase
		}
		stop := func(id string) {
			if err := fleet.Stop(ctx, id, 30); err != nil {
				t.Fatal(err)
			}
		}
		if phase("stays") != corev1.PodPending {
			t.Error("it runs at once")
		}
		stop("early")
		time.Sleep(startsAfter)
		synctest.Wait()
		if phase("stays") != corev1.PodRunning {
			t.Error("it does not run")
		}
		same := func(id string) string { return id }
		s.endContainers("ends", same)
		s.endContainers("ends", same)
		s.endContainers("never", same)
		if g, _ := fleet.Get(ctx, "ends"); g.Status.Phase != corev1.PodSucceeded || g.Status.ContainerStatuses[0].State.Terminated == nil {
			t.Errorf("what has ended is %+v", g.Status)
		}
		stop("stays")
		stop("ends")
		time.Sleep(stopsAfter)
		synctest.Wait()
		if _, err := s.GetPod(ctx, "groups", "stays"); !errdefs.IsNotFound(err) {
			t.Errorf("what was stopped is there: %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		want := "0s gone early\n5s began stays\n5s began ends\n5s ended ends\n5s gone ends\n6s gone stays"
		if got := strings.Join(noted, "\n"); got != want && got != strings.Replace(want, "5s began stays\n5s began ends", "5s began ends\n5s began stays", 1) {
			t.Errorf("noted:\n%s\nwant:\n%s", got, want)
		}
	})
}

// TestJournal checks the lines for each request with its response, for the group that it made, and for a request above the quota.
func TestJournal(t *testing.T) {
	var text bytes.Buffer
	j := &journal{to: &text}
	s := service{
		operation: func(*http.Request) string { return "Make" },
		made:      func(_ *http.Request, body, answer []byte) (id, pod string) { return string(answer), string(body) },
	}
	h := j.recordRequests(s, emulator.NewRates(s.operation, []emulator.Rate{{Operations: []string{"Make"}, Burst: 1}},
		markRefused(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }),
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("g1")) })))
	for range 2 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader("pod-1")))
	}
	j.recordLeft(map[string][]string{"log streams": {"a", "b"}, "groups": nil})
	if !regexp.MustCompile(`^\d+\.\d{6} request Make 200\n\d+\.\d{6} made g1 pod-1\n\d+\.\d{6} request Make refused\n\d+\.\d{6} left groups 0\n\d+\.\d{6} left log-streams 2\n\d+\.\d{6} left all 2\n$`).Match(text.Bytes()) {
		t.Errorf("got %s", text.String())
	}
}

// TestGroupsAreKnownByTheirPods checks the requests that make groups: each yields the group and the name of its
// pod.
func TestGroupsAreKnownByTheirPods(t *testing.T) {
	for _, c := range []struct {
		name, method, url, action, target, body, answer string
		made                                            func(*http.Request, []byte, []byte) (string, string)
		want                                            string
	}{
		{"ECI", "POST", "/", "CreateContainerGroup", "", "Tag.1.Key=a&Tag.1.Value=b&Tag.2.Key=vk-name&Tag.2.Value=web", `{"ContainerGroupId":"eci-1"}`, eciMade, "eci-1 web"},
		{"ECI, in the query", "POST", "/?Tag.1.Key=vk-name&Tag.1.Value=web", "CreateContainerGroup", "", "", `{"ContainerGroupId":"eci-1"}`, eciMade, "eci-1 web"},
		{"ECI, something else", "POST", "/", "DescribeContainerGroups", "", "Tag.1.Key=vk-name&Tag.1.Value=web", `{}`, eciMade, " "},
		{"ECS", "POST", "/", "", "AmazonEC2ContainerServiceV20141113.RunTask", `{"tags":[{"key":"vk-name","value":"web"}]}`, `{"tasks":[{"taskArn":"arn:aws:ecs:r:1:task/c/0a"}]}`, fargateMade, "0a web"},
		{"ECS, something else", "POST", "/", "", "AmazonEC2ContainerServiceV20141113.StopTask", `{}`, `{}`, fargateMade, " "},
		{"ACI", "PUT", "/subscriptions/s/resourceGroups/r/providers/Microsoft.ContainerInstance/containerGroups/g1?api-version=1", "", "", `{"tags":{"vk-name":"web"}}`, `{}`, aciMade, "g1 web"},
		{"ACI, with the tags of another", "PUT", "/containerGroups/g1", "", "", `{"tags":{"PodName":"web"}}`, `{}`, aciMade, "g1 web"},
		{"StackPath", "POST", "/workload/v1/stacks/s/workloads", "", "", `{"workload":{"metadata":{"labels":{"vk-name":"web"}}}}`, `{"workload":{"id":"wl-1"}}`, stackpathMade, "wl-1 web"},
		{"StackPath, something else", "GET", "/workload/v1/stacks/s/workloads", "", "", ``, `{"workload":{"id":"wl-1"}}`, stackpathMade, " "},
		{"ACI, something else", "GET", "/containerGroups/g1", "", "", ``, `{}`, aciMade, " "},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, c.url, nil)
		r.Header.Set("X-Acs-Action", c.action)
		r.Header.Set("X-Amz-Target", c.target)
		if id, pod := c.made(r, []byte(c.body), []byte(c.answer)); id+" "+pod != c.want {
			t.Errorf("%s: %s %s, want %s", c.name, id, pod, c.want)
		}
	}
}
