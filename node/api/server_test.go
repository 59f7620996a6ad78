// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/mux"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

func TestNilFunctionsAnswer501Or404(t *testing.T) {
	s := serve(t, api.PodHandlerConfig{})
	for path, want := range map[string]int{
		"/exec/default/web/app?command=ls&output=1": http.StatusNotImplemented,
		"/exec/default/web/uid/app":                 http.StatusNotImplemented,
		"/attach/default/web/app":                   http.StatusNotImplemented,
		"/attach/default/web/uid/app":               http.StatusNotImplemented,
		"/portForward/default/web":                  http.StatusNotImplemented,
		"/portForward/default/web/uid":              http.StatusNotImplemented,
		"/containerLogs/default/web/app":            http.StatusNotImplemented,
		"/pods":                                     http.StatusNotImplemented,
		"/runningpods/":                             http.StatusNotImplemented,
		"/stats/summary":                            http.StatusNotFound,
		"/metrics/resource":                         http.StatusNotFound,
		"/metrics":                                  http.StatusNotFound,
		"/":                                         http.StatusNotFound,
		"/configz":                                  http.StatusNotFound,
		"/flagz":                                    http.StatusNotFound,
		"/metrics/cadvisor":                         http.StatusNotFound,
		"/checkpoints":                              http.StatusNotFound,
		"//pods":                                    http.StatusNotFound,
		"/healthz":                                  http.StatusOK,
		"/healthz/ping":                             http.StatusOK,
	} {
		code, body := s.get(t, path)
		if code != want {
			t.Errorf("GET %s: got %d, want %d", path, code, want)
		}
		if want == http.StatusNotFound && body != "404 request not found\n" {
			t.Errorf("GET %s: got %q", path, body)
		}
		if want == http.StatusNotImplemented && body != "501 not implemented\n" {
			t.Errorf("GET %s: got %q", path, body)
		}
	}
}

func whole() api.PodHandlerConfig {
	list := func(context.Context) ([]*corev1.Pod, error) { return []*corev1.Pod{resolvedPod(), nil}, nil }
	return api.PodHandlerConfig{
		RunInContainer:        func(context.Context, string, string, string, []string, api.AttachIO) error { return nil },
		AttachToContainer:     func(context.Context, string, string, string, api.AttachIO) error { return nil },
		PortForward:           func(context.Context, string, string, int32, io.ReadWriteCloser) error { return nil },
		GetContainerLogs:      plainLog("hello\n"),
		GetPods:               list,
		GetPodsFromKubernetes: list,
		GetStatsSummary: func(context.Context) (*statsv1alpha1.Summary, error) {
			return &statsv1alpha1.Summary{Node: statsv1alpha1.NodeStats{NodeName: "vk"}}, nil
		},
		GetMetricsResource: func(context.Context) ([]*dto.MetricFamily, error) {
			name, value, kind := "node_cpu_usage_seconds_total", 1.5, dto.MetricType_COUNTER
			return []*dto.MetricFamily{{Name: &name, Type: &kind, Metric: []*dto.Metric{{Counter: &dto.Counter{Value: &value}}}}}, nil
		},
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "metrics") }),
	}
}

// Every path works with and without a trailing slash, without a redirect.
func TestNoRedirects(t *testing.T) {
	s := serve(t, whole())
	for _, path := range []string{
		"/pods", "/runningpods", "/healthz", "/healthz/ping", "/stats/summary", "/metrics/resource", "/metrics", "/containerLogs/default/web/app",
	} {
		for _, spelling := range []string{path, path + "/"} {
			if code, _ := s.get(t, spelling); code != http.StatusOK {
				t.Errorf("GET %s: got %d, want 200", spelling, code)
			}
		}
	}
	for _, path := range []string{
		"/exec/default/web/app", "/exec/default/web/1234/app", "/attach/default/web/app", "/attach/default/web/1234/app",
		"/portForward/default/web", "/portForward/default/web/1234",
	} {
		for _, spelling := range []string{path, path + "/"} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				if code, _, _ := s.do(t, method, spelling); code != http.StatusBadRequest {
					t.Errorf("%s %s without an upgrade: got %d, want 400", method, spelling, code)
				}
			}
		}
	}
	for _, path := range []string{"//exec/default/web/app", "/exec/../pods", "/exec//default/web/app", "/./pods", "/exec/%2e%2e/web/app", "/PODS", "/exec/default/web/app//"} {
		if code, _ := s.get(t, path); code != http.StatusNotFound && code != http.StatusBadRequest {
			t.Errorf("GET %s: got %d, want 404 or 400", path, code)
		}
	}
}

func TestWrongMethodAnswers405(t *testing.T) {
	s := serve(t, whole())
	for path, method := range map[string]string{
		"/pods": http.MethodPost, "/runningpods/": http.MethodDelete, "/containerLogs/default/web/app": http.MethodPost,
		"/exec/default/web/app": http.MethodPut, "/attach/default/web/app": http.MethodDelete,
		"/portForward/default/web": http.MethodPatch, "/stats/summary": http.MethodPost, "/metrics/resource": http.MethodPut,
		"/healthz": http.MethodPost, "/metrics": http.MethodPost,
	} {
		if code, _, _ := s.do(t, method, path); code != http.StatusMethodNotAllowed {
			t.Errorf("%s %s: got %d, want 405", method, path, code)
		}
	}
}

func TestStatsAndMetricsFormats(t *testing.T) {
	s := serve(t, whole())
	_, header, stats := s.do(t, http.MethodGet, "/stats/summary")
	if header.Get("Content-Type") != "application/json" || !strings.Contains(stats, `"nodeName":"vk"`) {
		t.Errorf("got %s %s", header.Get("Content-Type"), stats)
	}
	_, header, metrics := s.do(t, http.MethodGet, "/metrics/resource")
	want := "# TYPE node_cpu_usage_seconds_total counter\nnode_cpu_usage_seconds_total 1.5\n"
	if header.Get("Content-Type") != "text/plain; version=0.0.4" || metrics != want {
		t.Errorf("got %s %q, want %q", header.Get("Content-Type"), metrics, want)
	}
}

// TestAttachPodMetricsRoutesOnServeMux: the routes do not conflict on an http.ServeMux. They once had two
// handlers for one pattern, which panics.
func TestAttachPodMetricsRoutesOnServeMux(t *testing.T) {
	cfg := whole()
	serveMux := http.NewServeMux()
	api.AttachPodMetricsRoutes(api.PodMetricsConfig{GetStatsSummary: cfg.GetStatsSummary, GetMetricsResource: cfg.GetMetricsResource}, serveMux)
	s := serveHandler(t, serveMux)
	for path, want := range map[string]int{
		"/stats/summary": 200, "/stats/summary/": 200, "/metrics/resource": 200, "/metrics/resource/": 200,
		"/stats/summary/x": 404, "/metrics": 404, "/": 404,
	} {
		if code, _ := s.get(t, path); code != want {
			t.Errorf("GET %s: got %d, want %d", path, code, want)
		}
	}
}

func TestStandaloneHandlers(t *testing.T) {
	for _, h := range []http.Handler{api.PodStatsSummaryHandler(nil), api.PodMetricsResourceHandler(nil), api.HandleRunningPods(nil), api.HandlePodStatsSummary(nil), api.HandlePodMetricsResource(nil)} {
		if code, _ := serveHandler(t, h).get(t, "/anything"); code != http.StatusNotImplemented {
			t.Errorf("got %d, want 501", code)
		}
	}
}

func TestAttachPodRoutesOnServeMux(t *testing.T) {
	serveMux := http.NewServeMux()
	api.AttachPodRoutes(whole(), serveMux, true)
	if got := body(t, serveHandler(t, serveMux), "/containerLogs/default/web/app"); got != "hello\n" {
		t.Errorf("got %q", got)
	}
}

func TestHealth(t *testing.T) {
	var health error
	s := serve(t, api.PodHandlerConfig{Health: func(context.Context) error { return health }})
	if code, got := s.get(t, "/healthz"); code != http.StatusOK || got != "ok" {
		t.Errorf("got %d %q", code, got)
	}
	health = errdefs.NotFound("backend is gone")
	if code, got := s.get(t, "/healthz"); code != http.StatusInternalServerError || !strings.Contains(got, "backend is gone") {
		t.Errorf("got %d %q, want 500 with the reason", code, got)
	}
	if code, _ := s.get(t, "/healthz/ping"); code != http.StatusOK {
		t.Errorf("ping: got %d", code)
	}
}

// fieldsLogger is a logger that stores fields.
type fieldsLogger struct {
	log.Logger
	got log.Fields
}

func (l *fieldsLogger) WithFields(fields log.Fields) log.Logger {
	maps.Copy(l.got, fields)
	return l
}

func (l *fieldsLogger) WithField(key string, value any) log.Logger {
	return l.WithFields(log.Fields{key: value})
}

func (l *fieldsLogger) WithError(error) log.Logger { return l }
func (l *fieldsLogger) Debug(...any)               {}

func TestLogFieldsArePathAndVarsWithoutQuery(t *testing.T) {
	vars := map[string]string{"namespace": "default", "pod": "web", "container": "app"}
	mounted := http.NewServeMux()
	api.AttachPodRoutes(whole(), mounted, true)
	own := mux.NewRouter()
	own.Handle("/exec/{namespace}/{pod}/{container}", api.InstrumentHandler(http.HandlerFunc(api.NotFound)))
	for name, h := range map[string]http.Handler{"AttachPodRoutes": mounted, "own router": own} {
		logger := &fieldsLogger{got: log.Fields{}}
		s := serveHandler(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			h.ServeHTTP(w, req.WithContext(log.WithLogger(req.Context(), logger)))
		}))
		s.get(t, "/exec/default/web/app?command=canary")
		want := log.Fields{"uri": "/exec/default/web/app", "vars": vars}
		if diff := cmp.Diff(want, logger.got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}
