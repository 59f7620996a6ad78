// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

func TestMetricsAddress(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	kubeconfig := startAPIServer(t, &apiServer{objects: map[string]runtime.Object{}})
	log, done := start(ctx, "--provider=empty", "--kubeconfig="+kubeconfig, "--disable-kubelet-api", "--log-format=json", "--metrics-addr=127.0.0.1:0")
	var line struct{ Address string }
	if err := json.Unmarshal([]byte(log.waitFor(t, "Serving metrics", done)), &line); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/metrics": http.StatusOK, "/pods": http.StatusNotFound} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+line.Address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != want || want == http.StatusOK && !strings.Contains(string(body), "go_goroutines") {
			t.Errorf("GET %s: got %s, %v, want %d", path, response.Status, err, want)
		}
	}
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("got %d\n%s", code, log)
	}
}
