// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// empty is a provider without pods.
type empty struct {
	nodeutil.Provider // nil: a node without pods does not call its methods
	in                ProviderInput
}

func (empty) GetPods(context.Context) ([]*corev1.Pod, error)  { return nil, nil }
func (empty) NotifyPods(context.Context, func(*corev1.Pod))   {}
func (empty) ConfigureNode(_ context.Context, n *corev1.Node) { n.Labels["configured"] = "yes" }
func newEmpty(_ context.Context, in ProviderInput) (nodeutil.Provider, error) {
	return empty{in: in}, nil
}

var testProgram = Program{Name: "vk", Version: "v9", BuildTime: "today", Providers: []Provider{{Name: "empty", New: newEmpty}, {Name: "other", New: newEmpty}}}

// output collects the output of a program, and signals when a text has been written.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func newOutput() *output { return &output{changed: make(chan struct{}, 1)} }

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.changed <- struct{}{}:
	default:
	}
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// waitFor returns the line with text.
func (o *output) waitFor(t *testing.T, text string, done <-chan int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		for _, line := range strings.Split(o.String(), "\n") {
			if strings.Contains(line, text) {
				return line
			}
		}
		select {
		case <-o.changed:
		case code := <-done:
			t.Fatalf("the program ended with %d before it wrote %q:\n%s", code, text, o)
		case <-ctx.Done():
			t.Fatalf("%q did not come:\n%s", text, o)
		}
	}
}

func TestCommands(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	for _, tc := range []struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{[]string{"version"}, 0, "Version:    v9\n", ""},
		{[]string{"providers"}, 0, "empty\nother\n", ""},
		{[]string{"providers", "other"}, 0, "# Provider other.\n", ""},
		{[]string{"providers", "othre"}, 1, "", "vk: no such provider \"othre\": there are: empty, other; did you mean other?\n"},
		{[]string{"--disable-kubelet-api"}, 1, "", "vk: no provider chosen: set --provider to one of: empty, other\n"},
		{[]string{"--provider=empty"}, 1, "", "vk: no certificate for the kubelet API: set --tls-cert-file"},
		{[]string{"--trace-exporter=jaeger"}, 1, "", "flag --trace-exporter is gone: "},
		{[]string{"--bogus"}, 1, "", "vk: unknown flag --bogus: see vk --help\n"},
		{[]string{"bogus"}, 1, "", "vk: unknown command \"bogus\""},
		{[]string{"completion", "bash"}, 0, "# bash completion", ""},
		{[]string{"config", "print", "--disable-kubelet-api"}, 0, "apiVersion: virtual-kubelet.io/v1alpha1\n", ""},
		{[]string{"config", "print", "--port=-1"}, 1, "port: -1 # flag --port\n", "--port -1: want 0 to 65535"},
	} {
		var stdout, stderr bytes.Buffer
		code := testProgram.execute(t.Context(), tc.args, &stdout, &stderr)
		if code != tc.code || !strings.Contains(stdout.String(), tc.stdout) || !strings.Contains(stderr.String(), tc.stderr) {
			t.Errorf("%q: got %d, stdout %q, stderr %q\nwant %d, %q, %q", tc.args, code, &stdout, &stderr, tc.code, tc.stdout, tc.stderr)
		}
	}
}

// start runs the program, and returns its output and a channel for its exit code.
func start(ctx context.Context, args ...string) (*output, <-chan int) {
	log, done := newOutput(), make(chan int, 1)
	go func() { done <- testProgram.execute(ctx, args, io.Discard, log) }()
	return log, done
}

func TestRunServesAndStops(t *testing.T) {
	api := &apiServer{objects: map[string]runtime.Object{}}
	kubeconfig := startAPIServer(t, api)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log, done := start(ctx, "--provider=empty", "--kubeconfig="+kubeconfig, "--nodename=n1", "--node-ip=127.0.0.1", "--listen-address=127.0.0.1",
		"--port=0", "--self-signed-serving-certificate", "--log-format=json", "--taint-value=v", "--register-with-taints=gpu=a:NoExecute,spot:PreferNoSchedule",
		"--node-labels=topology.kubernetes.io/zone=z1,team=a", "--node-annotations=example.com/Cost=1", "--provider-id=cloud://n1")
	log.waitFor(t, "Node is ready", done)

	api.mu.Lock()
	n := api.node
	api.mu.Unlock()
	if n.Name != "n1" || n.Labels["configured"] != "yes" || !strings.HasSuffix(n.Status.NodeInfo.KubeletVersion, "-vk-v9") {
		t.Errorf("node: got name %q, labels %v, version %q", n.Name, n.Labels, n.Status.NodeInfo.KubeletVersion)
	}
	want := []corev1.Taint{{Key: "virtual-kubelet.io/provider", Value: "v", Effect: corev1.TaintEffectNoSchedule},
		{Key: "gpu", Value: "a", Effect: corev1.TaintEffectNoExecute}, {Key: "spot", Effect: corev1.TaintEffectPreferNoSchedule}}
	if !slices.Equal(n.Spec.Taints, want) {
		t.Errorf("taints: got %v, want %v", n.Spec.Taints, want)
	}
	if n.Labels[corev1.LabelTopologyZone] != "z1" || n.Labels["team"] != "a" || n.Labels[corev1.LabelOSStable] != "linux" || n.Annotations["example.com/Cost"] != "1" || n.Spec.ProviderID != "cloud://n1" {
		t.Errorf("got the labels %v, the annotations %v and the ID %q", n.Labels, n.Annotations, n.Spec.ProviderID)
	}

	url := fmt.Sprintf("https://127.0.0.1:%d", n.Status.DaemonEndpoints.KubeletEndpoint.Port)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	get := func(path, token string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(body)
	}
	for _, path := range []string{"/pods", "/metrics", "/metrics/", "/healthz", "/flagz", "/configz", "/debug/pprof/", "//metrics", "/none"} {
		for _, token := range []string{"", "bad"} {
			if status, _ := get(path, token); status != http.StatusUnauthorized {
				t.Errorf("GET %s with token %q: got %d, want 401", path, token, status)
			}
		}
	}
	if status, body := get("/metrics", "good"); status != http.StatusOK || !strings.Contains(body, "rest_client_requests_total") || !strings.Contains(body, "go_goroutines") {
		t.Errorf("GET /metrics: got %d, want 200 with the metrics of the client and the process", status)
	}

	cancel()
	stopping := time.Now()
	if code := <-done; code != 0 || time.Since(stopping) > stopTimeout {
		t.Errorf("stop: got %d after %s, want 0 within %s\n%s", code, time.Since(stopping), stopTimeout, log)
	}
}

func TestStartupTimeout(t *testing.T) {
	hangs := http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() })
	log, done := start(t.Context(), "--provider=empty", "--kubeconfig="+startAPIServer(t, hangs), "--disable-kubelet-api", "--startup-timeout=100ms")
	if code := <-done; code != 1 || !strings.HasSuffix(log.String(), "vk: node virtual-kubelet was not ready within --startup-timeout 100ms\n") {
		t.Errorf("got %d\n%s", code, log)
	}
}

// TestProviderIsNamedOnceInItsErrors holds this also for errors that already begin with the name of the provider.
func TestProviderIsNamedOnceInItsErrors(t *testing.T) {
	for said, want := range map[string]string{
		"url: is missing": "aci: url: is missing",
		"aci provider: url: is missing\naci provider: token: is missing": "aci: url: is missing\ntoken: is missing",
		"read the aci provider: no":                                      "aci: read the aci provider: no",
	} {
		err := errors.New(said)
		if got := (providerError{"aci", err}); got.Error() != want || !errors.Is(got, err) {
			t.Errorf("%q: got %q, want %q", said, got.Error(), want)
		}
	}
}

func TestProviderErrorEndsTheProgram(t *testing.T) {
	p := Program{Name: "vk", Providers: []Provider{{Name: "broken", New: func(context.Context, ProviderInput) (nodeutil.Provider, error) {
		return nil, fmt.Errorf("no credentials")
	}}}}
	log := newOutput()
	kubeconfig := startAPIServer(t, http.NotFoundHandler())
	code := p.execute(t.Context(), []string{"--kubeconfig=" + kubeconfig, "--disable-kubelet-api", "--nodename=n1"}, io.Discard, log)
	if code != 1 || !strings.HasSuffix(log.String(), "make provider: broken: no credentials\n") {
		t.Errorf("got %d\n%s", code, log)
	}
}

func TestProviderInput(t *testing.T) {
	r, err := resolveWith(t, []string{"--nodename=n1", "--node-ip=192.0.2.1", "--self-signed-serving-certificate", "--provider-config=p.yaml", "--os=windows"}, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{}
	node.Name = "n1"
	node.Labels = map[string]string{}
	made, _, err := r.newProvider(t.Context(), testProgram.Providers[0])(nodeutil.ProviderConfig{Node: node})
	if err != nil {
		t.Fatal(err)
	}
	in := made.(empty).in
	if in.NodeName != "n1" || in.InternalIP != "192.0.2.1" || in.DaemonPort != 10250 || in.ConfigPath != "p.yaml" || in.OperatingSystem != "windows" ||
		in.KubeClusterDomain != "cluster.local" || in.Node != node {
		t.Errorf("got %+v", in)
	}
}
