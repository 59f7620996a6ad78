// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/mux"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// closed returns a configuration whose provider must not be called. Its node has the pod default/web with UID
// 1234 and the containers init, app and debug.
func closed(t *testing.T) api.PodHandlerConfig {
	called := func(what, namespace, pod, container string) {
		t.Errorf("the provider was asked for %s of %s/%s %s", what, namespace, pod, container)
	}
	return api.PodHandlerConfig{
		RunInContainer: func(_ context.Context, namespace, pod, container string, _ []string, _ api.AttachIO) error {
			called("exec", namespace, pod, container)
			return nil
		},
		AttachToContainer: func(_ context.Context, namespace, pod, container string, _ api.AttachIO) error {
			called("attach", namespace, pod, container)
			return nil
		},
		PortForward: func(_ context.Context, namespace, pod string, _ int32, _ io.ReadWriteCloser) error {
			called("port-forward", namespace, pod, "")
			return nil
		},
		GetContainerLogs: func(_ context.Context, namespace, pod, container string, _ api.ContainerLogOpts) (io.ReadCloser, error) {
			called("logs", namespace, pod, container)
			return io.NopCloser(strings.NewReader("")), nil
		},
		GetPod: func(namespace, name string) (*corev1.Pod, error) {
			if namespace == "default" && name == "web" {
				return resolvedPod(), nil
			}
			return nil, nil
		},
	}
}

// upgrades requests path over each protocol for streams, and without one, and returns the status codes.
func upgrades(t *testing.T, h http.Handler, path string) map[string]int {
	t.Helper()
	got := map[string]int{}
	for name, header := range map[string]http.Header{
		"SPDY": {"Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"}, "X-Stream-Protocol-Version": {"v4.channel.k8s.io"}},
		"WebSocket": {"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
			"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}, "Sec-Websocket-Protocol": {"v4.channel.k8s.io"}},
		"plain": {},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			req, err := http.NewRequestWithContext(t.Context(), method, "http://node"+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header = header.Clone()
			w := httptest.NewRecorder()
			h.ServeHTTP(w, req)
			if method == http.MethodPost && strings.HasPrefix(path, "/containerLogs") && w.Code == http.StatusMethodNotAllowed {
				continue
			}
			got[method+" "+name] = w.Code
		}
	}
	return got
}

const streamQuery = "?command=id&output=1&port=80"

func checkRefused(t *testing.T, want int, paths ...string) {
	t.Helper()
	h := api.PodHandler(closed(t), true)
	for _, path := range paths {
		for _, spelling := range []string{path, path + "/"} {
			for how, got := range upgrades(t, h, spelling+streamQuery) {
				if got != want {
					t.Errorf("%s %s: got %d, want %d", how, spelling, got, want)
				}
			}
		}
	}
}

// TestSecurityA9OnlyPodsOfThisNode: requests for unknown pods, and for a known pod with another UID, are
// refused.
func TestSecurityA9OnlyPodsOfThisNode(t *testing.T) {
	checkRefused(t, http.StatusNotFound,
		"/containerLogs/default/other/app", "/containerLogs/kube-system/web/app",
		"/exec/default/other/app", "/exec/kube-system/web/app", "/exec/default/web/5678/app", "/exec/kube-system/web/1234/app",
		"/attach/default/other/app", "/attach/kube-system/web/app", "/attach/default/web/5678/app", "/attach/kube-system/web/1234/app",
		"/portForward/default/other", "/portForward/kube-system/web", "/portForward/default/web/5678", "/portForward/kube-system/web/1234")
}

// TestSecurityA10OnlyContainersOfThePod: requests for unknown containers of a known pod are refused.
func TestSecurityA10OnlyContainersOfThePod(t *testing.T) {
	checkRefused(t, http.StatusNotFound, "/containerLogs/default/web/other", "/exec/default/web/other", "/exec/default/web/1234/other",
		"/attach/default/web/other", "/attach/default/web/1234/other")
}

// TestSecurityE6NamesAreNames: a path with an invalid Kubernetes name gets 400, or 404 where no route matches
// the path.
func TestSecurityE6NamesAreNames(t *testing.T) {
	h := api.PodHandler(closed(t), true)
	for _, name := range []string{
		"UPPER", "under_score", "-dash", "dash-", "dot.", "a%20b", "a%00b", "%2e%2e", "%2e", "a%2f..%2fb", "a%5cb", "%ff", "caf%c3%a9",
		"a;b", "$(id)", "`id`", "a%0ab", strings.Repeat("a", 254),
	} {
		for _, path := range []string{
			"/containerLogs/NAME/web/app", "/containerLogs/default/NAME/app", "/containerLogs/default/web/NAME",
			"/exec/NAME/web/app", "/exec/default/NAME/app", "/exec/default/web/NAME", "/exec/NAME/web/1234/app", "/exec/default/NAME/1234/app", "/exec/default/web/1234/NAME",
			"/attach/NAME/web/app", "/attach/default/NAME/app", "/attach/default/web/NAME",
			"/portForward/NAME/web", "/portForward/default/NAME",
		} {
			path = strings.Replace(path, "NAME", name, 1)
			for how, got := range upgrades(t, h, path+streamQuery) {
				if got != http.StatusBadRequest && (got != http.StatusNotFound || !strings.Contains(name, "%2")) {
					t.Errorf("%s %s: got %d, want 400", how, path, got)
				}
			}
		}
	}
}

// TestSecurityE6CommandsAre128KiBAtMost sends the longest allowed command, and a command that is one byte
// longer.
func TestSecurityE6CommandsAre128KiBAtMost(t *testing.T) {
	const most = 128 << 10
	s := serve(t, whole())
	for length, want := range map[int]string{most: "upgrade", most + 1: "at most 131072 are allowed"} {
		command := "command=" + strings.Repeat("a", most/2) + "&command=" + strings.Repeat("b", length-most/2-1)
		if code, got := s.get(t, "/exec/default/web/app?output=1&"+command); code != http.StatusBadRequest || !strings.Contains(got, want) {
			t.Errorf("a command of %d bytes: got %d %.100q, want 400 with %q", length, code, got, want)
		}
	}
}

// TestSecurityE8NoAnswerIsARedirect: no request for a route, or for a path that is almost a route, is
// redirected, with any method.
func TestSecurityE8NoAnswerIsARedirect(t *testing.T) {
	cfg := whole()
	cfg.Profiling = true
	cfg.GetConfig = func() any { return nil }
	cfg.GetFlags = func() map[string]string { return nil }
	handler := api.PodHandler(cfg, true)
	s := serveHandler(t, handler)
	routes, ok := handler.(interface{ Walk(mux.WalkFunc) error })
	if !ok {
		t.Fatalf("%T shows no routes", handler)
	}
	paths := map[string]bool{"/": true, "": true}
	err := routes.Walk(func(route *mux.Route, _ *mux.Router, _ []*mux.Route) error {
		path, err := route.GetPathTemplate()
		path = strings.NewReplacer("{namespace}", "default", "{pod}", "web", "{uid}", "1234", "{container}", "app",
			"{check}", "ping", "/{profile}", "/threadcreate", "/profile", "/profile").Replace(path)
		for _, spelling := range []string{path, path + "/", "/" + path, strings.Replace(path, "/", "/./", 1), strings.ToUpper(path), "/x/.." + path, path + "/.."} {
			paths[spelling] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < 150 {
		t.Errorf("only %d paths were found", len(paths))
	}
	for path := range paths {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodHead, http.MethodOptions, http.MethodDelete} {
			if strings.HasSuffix(strings.TrimSuffix(path, "/"), "pprof/profile") {
				path += "?seconds=0" // a profile would otherwise take its full duration
			}
			if code, header, _ := s.do(t, method, path); code/100 == 3 || header.Get("Location") != "" {
				t.Errorf("%s %s: got %d to %q", method, path, code, header.Get("Location"))
			}
			<-s.served
		}
	}
}
