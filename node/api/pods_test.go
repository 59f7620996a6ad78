// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// resolvedPod returns a pod as a provider receives it, with values of Secrets in its environment.
func resolvedPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1234", Annotations: map[string]string{"a": "canary"}},
		Spec: corev1.PodSpec{
			NodeName:       "vk",
			InitContainers: []corev1.Container{{Name: "init", Args: []string{"canary"}}},
			Containers: []corev1.Container{{
				Name: "app", Image: "nginx", Command: []string{"canary"}, Args: []string{"canary"},
				Env: []corev1.EnvVar{{Name: "TOKEN", Value: "canary"}},
			}},
			EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func TestRunningPodsOnlyWithDebug(t *testing.T) {
	s := serveHandler(t, api.PodHandler(whole(), false))
	for _, path := range []string{"/runningpods", "/runningpods/"} {
		if code, _ := s.get(t, path); code != http.StatusNotFound {
			t.Errorf("GET %s: got %d, want 404", path, code)
		}
	}
}

func TestRunningPodsShowNoSecrets(t *testing.T) {
	s := serve(t, whole())
	code, header, body := s.do(t, http.MethodGet, "/runningpods/")
	if code != http.StatusOK || header.Get("Content-Type") != "application/json" {
		t.Fatalf("got %d %s", code, header.Get("Content-Type"))
	}
	if strings.Contains(body, "canary") {
		t.Errorf("a resolved value leaves the node: %s", body)
	}
	list := decodePods(t, body)
	pod := list.Items[0]
	if pod.Namespace != "default" || pod.Name != "web" || pod.UID != "1234" || pod.Spec.Containers[0].Image != "nginx" || pod.Status.Phase != corev1.PodRunning {
		t.Errorf("got %+v", pod)
	}
}

func TestPodsAreAPodList(t *testing.T) {
	cfg := whole()
	if list := decodePods(t, body(t, serve(t, cfg), "/pods")); list.Items[0].Spec.Containers[0].Command == nil {
		t.Errorf("got %+v, want whole pods", list.Items[0])
	}
	cfg.GetPodsFromKubernetes = func(context.Context) ([]*corev1.Pod, error) { return nil, nil }
	if got := body(t, serve(t, cfg), "/pods"); !strings.Contains(got, `"items":[]`) {
		t.Errorf("got %s, want an empty list of items", got)
	}
	cfg.GetPodsFromKubernetes = func(context.Context) ([]*corev1.Pod, error) { return nil, errBackend }
	if code, got := serve(t, cfg).get(t, "/pods"); code != http.StatusInternalServerError || !strings.Contains(got, errBackend.Error()) {
		t.Errorf("got %d %q, want 500", code, got)
	}
}

func body(t *testing.T, s server, path string) string {
	t.Helper()
	code, got := s.get(t, path)
	if code != http.StatusOK {
		t.Fatalf("GET %s: got %d %q", path, code, got)
	}
	return got
}

func decodePods(t *testing.T, body string) corev1.PodList {
	t.Helper()
	var list corev1.PodList
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatal(err)
	}
	if list.Kind != "PodList" || list.APIVersion != "v1" || len(list.Items) != 1 {
		t.Fatalf("got %s %s with %d pods, want v1 PodList with 1", list.APIVersion, list.Kind, len(list.Items))
	}
	return list
}

// TestUnknownPodUIDOrContainerAnswers404: with GetPod, the provider gets no request for an unknown pod, UID or
// container.
func TestUnknownPodUIDOrContainerAnswers404(t *testing.T) {
	var lookup error
	cfg := api.PodHandlerConfig{
		RunInContainer: func(context.Context, string, string, string, []string, api.AttachIO) error {
			t.Error("provider was called")
			return nil
		},
		GetContainerLogs: func(_ context.Context, _, _, container string, _ api.ContainerLogOpts) (io.ReadCloser, error) {
			if container == "other" {
				t.Error("provider was called")
			}
			return io.NopCloser(strings.NewReader("hello\n")), nil
		},
		GetPod: func(namespace, name string) (*corev1.Pod, error) {
			switch {
			case lookup != nil:
				return nil, lookup
			case namespace == "default" && name == "web":
				return resolvedPod(), nil
			case name == "none":
				return nil, nil
			}
			return nil, errdefs.NotFound("no such pod")
		},
	}
	cfg.AttachToContainer = func(context.Context, string, string, string, api.AttachIO) error { return nil }
	cfg.PortForward = func(context.Context, string, string, int32, io.ReadWriteCloser) error { return nil }
	s := serve(t, cfg)
	for path, want := range map[string]int{
		"/containerLogs/default/web/app":               200,
		"/containerLogs/default/web/init":              200,
		"/containerLogs/default/web/debug":             200,
		"/containerLogs/default/web/other":             404,
		"/containerLogs/default/web/other?tailLines=0": 404,
		"/containerLogs/kube-system/web/app":           404,
		"/containerLogs/default/none/app":              404,
		"/containerLogs/default/w_b/app":               400,
		"/exec/default/web/other?command=ls&output=1":  404,
		"/exec/default/web/5678/app?command=ls":        404,
		"/exec/default/web/1234/app?command=ls":        400, // the container exists, but the request has no upgrade
		"/attach/default/web/5678/app":                 404,
		"/attach/default/web/1234/app":                 400,
		"/portForward/default/web/5678":                404,
		"/portForward/default/web/1234":                400,
		"/portForward/default/gone":                    404,
	} {
		if code, got := s.get(t, path); code != want {
			t.Errorf("GET %s: got %d %q, want %d", path, code, got, want)
		}
	}
	lookup = errors.New("cache is not synced")
	if code, _ := s.get(t, "/containerLogs/default/web/app"); code != http.StatusInternalServerError {
		t.Errorf("got %d, want 500", code)
	}
}

func TestPanicInListAnswers500(t *testing.T) {
	s := serve(t, api.PodHandlerConfig{GetPodsFromKubernetes: func(context.Context) ([]*corev1.Pod, error) { panic("canary") }})
	if code, got := s.get(t, "/pods"); code != http.StatusInternalServerError || strings.Contains(got, "canary") {
		t.Errorf("got %d %q, want 500 without the value", code, got)
	}
}
