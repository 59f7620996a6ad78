// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// TestNodeServerAsksWhoCalls sends requests to the port of the node itself, past the API server.
func TestNodeServerAsksWhoCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	credentials := w.api.NodeCredentials(t, w.nodeName)
	w.startProgram("127.0.0.1", credentials)
	node := w.awaitNode("is ready", nodeReady)
	w.startPod(w.pod("web"))
	server := fmt.Sprintf("https://127.0.0.1:%d", node.Status.DaemonEndpoints.KubeletEndpoint.Port)

	itself, err := clientcmd.BuildConfigFromFlags("", credentials.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	token := &authenticationv1.TokenRequest{}
	token, err = w.client().CoreV1().ServiceAccounts(w.namespace).CreateToken(t.Context(), "default", token, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, caller := range map[string]struct {
		config *rest.Config
		want   int
	}{
		"nobody":            {rest.AnonymousClientConfig(w.api.Config), http.StatusUnauthorized},
		"a wrong token":     {bearing(w.api.Config, "wrong"), http.StatusUnauthorized},
		"a service account": {bearing(w.api.Config, token.Status.Token), http.StatusForbidden},
		"the node itself":   {itself, http.StatusForbidden},
		"an administrator":  {w.api.Config, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/pods", "/runningpods/", "/stats/summary", "/metrics", "/metrics/resource", "/healthz",
				"/containerLogs/" + w.key("web") + "/main", "/nowhere"} {
				want := caller.want
				if path == "/nowhere" && want == http.StatusOK {
					want = http.StatusNotFound
				}
				if got := w.ask(t, caller.config, http.MethodGet, server+path); got != want {
					t.Errorf("GET %s: got status %d, want %d", path, got, want)
				}
			}
			if caller.want == http.StatusOK {
				return
			}
			for _, path := range []string{"/exec/", "/attach/", "/portForward/"} {
				if got := w.ask(t, caller.config, http.MethodPost, server+path+w.key("web")+"/main?command=true&output=1"); got != caller.want {
					t.Errorf("POST %s: got status %d, want %d", path, got, caller.want)
				}
			}
		})
	}
}

// bearing returns a configuration with a token and no other credentials.
func bearing(config *rest.Config, token string) *rest.Config {
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = token
	return config
}

// ask sends a request and returns the status code. It verifies the node's serving certificate against the CA of
// the cluster.
func (w *world) ask(t *testing.T, config *rest.Config, method, url string) int {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}
