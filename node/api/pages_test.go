// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

func TestWhatAKubeletServesAndANodeDoesNotSaysWhy(t *testing.T) {
	s := serve(t, whole())
	for path, want := range map[string]string{
		"/run/default/web/app":        "/exec",
		"/logs/":                      "log files",
		"/logs":                       "log files",
		"/logs/some/file":             "log files",
		"/checkpoint/default/web/app": "checkpoint",
		"/debug/pprof/":               "profiling",
		"/debug/flags/v":              "SetVerbosity",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut} {
			code, _, got := s.do(t, method, path)
			if code != http.StatusNotImplemented || !strings.Contains(got, want) || strings.Count(got, "\n") != 1 {
				t.Errorf("%s %s: got %d %q, want 501 and one line with %q", method, path, code, got, want)
			}
		}
	}
}

func TestHealthHasParts(t *testing.T) {
	broken := errors.New("it is broken")
	var node, loop, live error
	s := serve(t, api.PodHandlerConfig{
		Health:       func(context.Context) error { return node },
		Live:         func(context.Context) error { return live },
		HealthChecks: []api.HealthCheck{{Name: "syncloop", Check: func(context.Context) error { return loop }}},
	})
	check := func(path string, want int, parts ...string) {
		t.Helper()
		code, got := s.get(t, path)
		for _, part := range parts {
			if !strings.Contains(got, part) {
				t.Errorf("GET %s: got %q, want it to have %q", path, got, part)
			}
		}
		if code != want {
			t.Errorf("GET %s: got %d %q, want %d", path, code, got, want)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/livez", "/healthz/ping", "/healthz/node", "/healthz/syncloop", "/readyz/syncloop", "/livez/node", "/healthz?verbose=0"} {
		if code, got := s.get(t, path); code != http.StatusOK || got != "ok" {
			t.Errorf("GET %s: got %d %q, want ok", path, code, got)
		}
	}
	check("/healthz?verbose", 200, "[+]ping ok\n", "[+]syncloop ok\n", "healthz check passed")
	check("/livez?verbose=true", 200, "[+]ping ok\n[+]node ok\nlivez check passed")
	check("/healthz/nothing", 404)
	check("/livez/syncloop", 404)

	loop = broken
	check("/healthz", 500, "[+]ping ok\n", "[-]syncloop failed: it is broken", "healthz check failed")
	check("/readyz/syncloop", 500, "it is broken")
	check("/readyz?exclude=syncloop", 200)
	check("/healthz/node", 200)
	check("/livez", 200)
	loop, node = nil, broken
	check("/readyz", 500, "[-]node failed")
	check("/livez", 200)
	node, live = nil, broken
	check("/healthz", 200)
	check("/livez", 500, "[-]node failed")
}

func TestHealthCheckThatPanicsFails(t *testing.T) {
	s := serve(t, api.PodHandlerConfig{HealthChecks: []api.HealthCheck{{Name: "odd", Check: func(context.Context) error { panic("canary") }}}})
	for _, path := range []string{"/healthz", "/healthz/odd"} {
		if code, got := s.get(t, path); code != http.StatusInternalServerError || strings.Contains(got, "canary") {
			t.Errorf("GET %s: got %d %q, want 500 without the value", path, code, got)
		}
	}
}

func TestPagesAboutTheNode(t *testing.T) {
	cfg := whole()
	cfg.Version = "v1.37-vk"
	cfg.GetFlags = func() map[string]string { return map[string]string{"port": "10250", "nodename": "n1"} }
	cfg.GetConfig = func() any { return map[string]string{"kind": "KubeletConfiguration"} }
	s := serve(t, cfg)
	for path, want := range map[string][]string{
		"/configz": {`{"kubeletconfig":{"kind":"KubeletConfiguration"}}`},
		"/flagz":   {"nodename=n1\nport=10250\n"},
		"/statusz": {"Started: ", "Up: 0 hr", "Binary version: v1.37-vk\n", " /exec/{namespace}/{pod}/{container} ", " /healthz "},
	} {
		got := body(t, s, path)
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("GET %s: got %q, want it to have %q", path, got, part)
			}
		}
	}
	if got := body(t, s, "/metrics/probes"); got != "" {
		t.Errorf("/metrics/probes: got %q, want nothing", got)
	}
}

func TestMetricsOfProbes(t *testing.T) {
	cfg := whole()
	cfg.GetMetricsProbes = func(context.Context) ([]*dto.MetricFamily, error) {
		return []*dto.MetricFamily{{
			Name: ptr.To("prober_probe_total"), Type: dto.MetricType_COUNTER.Enum(),
			Metric: []*dto.Metric{{Counter: &dto.Counter{Value: ptr.To(3.0)}}},
		}}, nil
	}
	if got, want := body(t, serve(t, cfg), "/metrics/probes"), "# TYPE prober_probe_total counter\nprober_probe_total 3\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestProfilesWhenAskedFor(t *testing.T) {
	s := serve(t, api.PodHandlerConfig{Profiling: true})
	if got := body(t, s, "/debug/pprof/"); !strings.Contains(got, "heap\n") || !strings.Contains(got, "profile\n") {
		t.Errorf("the list is %q", got)
	}
	if got := body(t, s, "/debug/pprof/goroutine?debug=1"); !strings.Contains(got, "goroutine profile") {
		t.Errorf("goroutines: got %.200q", got)
	}
	if got := body(t, s, "/debug/pprof/heap"); !strings.HasPrefix(got, "\x1f\x8b") {
		t.Errorf("heap: got %.20q, want what go tool pprof reads", got)
	}
	for path, want := range map[string]int{"/debug/pprof/nothing": 404, "/debug/pprof/profile?seconds=0": 400, "/debug/pprof/profile?seconds=301": 400, "/debug/flags": 501} {
		if code, _ := s.get(t, path); code != want {
			t.Errorf("GET %s: got %d, want %d", path, code, want)
		}
	}
}

func TestCadvisorMetricsFromStatistics(t *testing.T) {
	at := metav1.NewTime(time.UnixMilli(1700000000123))
	cfg := whole()
	cfg.GetPod = func(string, string) (*corev1.Pod, error) {
		pod := resolvedPod()
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", ContainerID: "vk://abc"}}
		return pod, nil
	}
	cfg.GetStatsSummary = func(context.Context) (*statsv1alpha1.Summary, error) {
		return &statsv1alpha1.Summary{
			Node: statsv1alpha1.NodeStats{Memory: &statsv1alpha1.MemoryStats{WorkingSetBytes: ptr.To[uint64](7)}},
			Pods: []statsv1alpha1.PodStats{{
				PodRef:  statsv1alpha1.PodReference{Name: "web", Namespace: "default", UID: "1234"},
				Network: &statsv1alpha1.NetworkStats{InterfaceStats: statsv1alpha1.InterfaceStats{Name: "eth0", RxBytes: ptr.To[uint64](5)}},
				Containers: []statsv1alpha1.ContainerStats{{
					Name: "app", StartTime: at,
					CPU:    &statsv1alpha1.CPUStats{Time: at, UsageCoreNanoSeconds: ptr.To[uint64](1500000000)},
					Memory: &statsv1alpha1.MemoryStats{Time: at, WorkingSetBytes: ptr.To[uint64](9)},
				}},
			}},
		}, nil
	}
	got := body(t, serve(t, cfg), "/metrics/cadvisor")
	for _, want := range []string{
		"# TYPE container_cpu_usage_seconds_total counter\n",
		`container_cpu_usage_seconds_total{container="app",id="/kubepods/pod1234/app",image="nginx",name="abc",namespace="default",pod="web",cpu="total"} 1.5 1700000000123` + "\n",
		`container_memory_working_set_bytes{container="",id="/",image="",name="",namespace="",pod=""} 7` + "\n",
		`container_memory_working_set_bytes{container="app",id="/kubepods/pod1234/app",image="nginx",name="abc",namespace="default",pod="web"} 9 1700000000123` + "\n",
		`container_network_receive_bytes_total{container="",id="/kubepods/pod1234",image="",name="",namespace="default",pod="web",interface="eth0"} 5` + "\n",
		`container_start_time_seconds{container="app",`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "# TYPE container_memory_working_set_bytes "); n != 1 {
		t.Errorf("one family comes %d times", n)
	}
	cfg.GetStatsSummary = func(context.Context) (*statsv1alpha1.Summary, error) { return nil, errBackend }
	if code, _ := serve(t, cfg).get(t, "/metrics/cadvisor"); code != http.StatusInternalServerError {
		t.Errorf("without statistics: got %d, want 500", code)
	}
}

// TestVerbosityIsSetAtRunTime: PUT /debug/flags/v sets the verbosity, as with a kubelet.
func TestVerbosityIsSetAtRunTime(t *testing.T) {
	var set []string
	h := api.PodHandler(api.PodHandlerConfig{SetVerbosity: func(value string) error {
		if value == "x" {
			return errors.New("no number")
		}
		set = append(set, value)
		return nil
	}}, true)
	do := func(method, body string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "/debug/flags/v", strings.NewReader(body)))
		return w.Code, w.Body.String()
	}
	if code, got := do(http.MethodPut, "5\n"); code != http.StatusOK || got != "successfully set the verbosity to 5\n" {
		t.Errorf("got %d %q", code, got)
	}
	if code, got := do(http.MethodPut, "x"); code != http.StatusBadRequest || !strings.Contains(got, "no number") {
		t.Errorf("got %d %q", code, got)
	}
	do(http.MethodPut, strings.Repeat("1", 1000))
	if code, _ := do(http.MethodGet, ""); code != http.StatusMethodNotAllowed {
		t.Errorf("GET: got %d", code)
	}
	if len(set) != 2 || set[0] != "5" || len(set[1]) > 21 {
		t.Errorf("set %q, want 5 and a beginning", set)
	}
}
