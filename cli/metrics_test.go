// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

func TestMetricsAddress(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	kubeconfig := startAPIServer(t, &apiServer{objects: map[string]runtime.Object{}})
	log, done := start(ctx, "--provider=empty", "--kubeconfig="+kubeconfig, "--disable-kubelet-api", "--log-format=json", "--log-level=debug", "--metrics-addr=127.0.0.1:0")
	var line struct{ Address string }
	if err := json.Unmarshal([]byte(log.waitFor(t, "Serving metrics", done)), &line); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/metrics": http.StatusOK, "/livez": http.StatusOK, "/pods": http.StatusNotFound} {
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
		if err != nil || response.StatusCode != want || path == "/metrics" && !strings.Contains(string(body), "go_goroutines") {
			t.Errorf("GET %s: got %s, %v, want %d", path, response.Status, err, want)
		}
	}
	var said bytes.Buffer
	if code := testProgram.execute(ctx, []string{"livez", "--metrics-addr=" + line.Address}, &said, &said); code != 0 {
		t.Errorf("livez: got %d, %s", code, &said)
	}
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("got %d\n%s", code, log)
	}
	if code := testProgram.execute(t.Context(), []string{"livez", "--metrics-addr=" + line.Address}, &said, &said); code != 1 || !strings.Contains(said.String(), "the program does not answer") {
		t.Errorf("livez after the end: got %d, %s", code, &said)
	}
}

// TestDebugAddress holds that the page is served only to requests for a loopback host.
func TestDebugAddress(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	kubeconfig := startAPIServer(t, &apiServer{objects: map[string]runtime.Object{}})
	log, done := start(ctx, "--provider=empty", "--kubeconfig="+kubeconfig, "--nodename=n1", "--disable-kubelet-api", "--log-format=json", "--log-level=debug", "--debug-addr=127.0.0.1:0")
	var line struct{ Address string }
	if err := json.Unmarshal([]byte(log.waitFor(t, "Serving the debug page", done)), &line); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(line.Address)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		path, host string
		status     int
	}{
		{"/debug/pods", "", 200}, {"/", "localhost", 200}, {"/debug/pods", "localhost:" + port, 200}, {"/debug/pods", "[::1]:" + port, 200}, {"/debug/pods", "[::1]", 200},
		{"/debug/pods", "evil.example", 403}, {"/debug/pods", "evil.example:" + port, 403}, {"/debug/pods", "192.0.2.1:80", 403}, {"/metrics", "", 404}, {"/pods", "", 404},
	} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+line.Address+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = test.host
		client := &http.Client{CheckRedirect: func(next *http.Request, _ []*http.Request) error {
			next.Host = test.host
			next.URL.Host = line.Address
			return nil
		}}
		response, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != test.status || (test.status == 200) != strings.Contains(string(body), "<h2>n1</h2>") {
			t.Errorf("GET %s of %q: got %s, %v, want %d\n%s", test.path, test.host, response.Status, err, test.status, body)
		}
	}
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("got %d\n%s", code, log)
	}
}

// TestLivezSeesAHang holds that livez fails for a stopped process, although the kernel still accepts connections for it.
func TestLivezSeesAHang(t *testing.T) {
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var said bytes.Buffer
	if code := testProgram.execute(t.Context(), []string{"livez", "--timeout=100ms", "--metrics-addr=" + l.Addr().String()}, &said, &said); code != 1 || !strings.Contains(said.String(), "the program does not answer") {
		t.Errorf("got %d, %s", code, &said)
	}
	if code := testProgram.execute(t.Context(), []string{"livez"}, &said, &said); code != 1 || !strings.Contains(said.String(), "--metrics-addr is not set") {
		t.Errorf("without an address: got %d, %s", code, &said)
	}
}
