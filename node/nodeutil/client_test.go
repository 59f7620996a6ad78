// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// writeKubeconfig returns the path of a kubeconfig for the server at url.
func writeKubeconfig(t *testing.T, url string) string {
	t.Helper()
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters["c"] = &clientcmdapi.Cluster{Server: url}
	cfg.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	cfg.CurrentContext = "c"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*cfg, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// outsideCluster hides the service account of a cluster, if there is one.
func outsideCluster(t *testing.T) {
	t.Helper()
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBERNETES_SERVICE_PORT", "")
	t.Setenv("KUBECONFIG", "")
}

func TestClientsetFromEnv(t *testing.T) {
	outsideCluster(t)
	client, err := ClientsetFromEnv(writeKubeconfig(t, "https://api.example:6443"))
	if err != nil {
		t.Fatal(err)
	}
	core := client.CoreV1().RESTClient()
	if got := core.Get().URL().Host; got != "api.example:6443" {
		t.Errorf("host: got %s", got)
	}
	if got := core.GetRateLimiter().QPS(); got != 5000 {
		t.Errorf("QPS: got %v, want 5000", got)
	}

	missing := filepath.Join(t.TempDir(), "missing")
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"": "", missing: missing, broken: ""} {
		_, err := ClientsetFromEnv(path)
		if err == nil || !strings.HasPrefix(err.Error(), "error getting rest client config: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("path %q: got error %v", path, err)
		}
	}
}

func TestLimits(t *testing.T) {
	shared := flowcontrol.NewFakeAlwaysRateLimiter()
	for _, tc := range []struct {
		qps       float32
		burst     int
		wantQPS   float32
		wantBurst int
	}{
		{0, 0, 5000, 10000}, {7, 9, 7, 9}, {0, 9, 5000, 9}, {20, 0, 20, 40}, {0.1, 0, 0.1, 1}, {-1, 0, -1, 1},
		{float32(math.Inf(1)), 0, float32(math.Inf(1)), math.MaxInt32},
	} {
		got := withLimits(&rest.Config{RateLimiter: shared}, tc.qps, tc.burst)
		if got.QPS != tc.wantQPS || got.Burst != tc.wantBurst || got.RateLimiter != nil {
			t.Errorf("limits %v/%d: got %v/%d, limiter %v", tc.qps, tc.burst, got.QPS, got.Burst, got.RateLimiter)
		}
	}
}

func TestNodeLeaseV1Client(t *testing.T) {
	client := fake.NewClientset()
	if _, err := NodeLeaseV1Client(client).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := client.Actions()[0].GetNamespace(); got != "kube-node-lease" {
		t.Errorf("namespace: got %s", got)
	}
}

func TestPodFilters(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}}
	n1, n2 := FilterPodsForNodeName("n1"), FilterPodsForNodeName("n2")
	for _, tc := range []struct {
		name   string
		filter node.PodEventFilterFunc
		want   bool
	}{
		{"this node", n1, true},
		{"another node", n2, false},
		{"any of them", PodFilters(n2, n1), true},
		{"none of them", PodFilters(n2, n2), false},
		{"no filter", PodFilters(), false},
	} {
		if got := tc.filter(context.Background(), pod); got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
}

// TestHeartbeatsHaveTheirOwnLimits: heartbeats get through when the limit of the given client is used up. Many
// programs give only a client.
func TestHeartbeatsHaveTheirOwnLimits(t *testing.T) {
	var path atomic.Value
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		path.Store(req.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		kind := map[bool]string{true: `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1"}`, false: `{"kind":"Node","apiVersion":"v1"}`}
		_, _ = w.Write([]byte(kind[strings.Contains(req.URL.Path, "leases")]))
	}))
	defer srv.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: srv.URL, RateLimiter: flowcontrol.NewFakeNeverRateLimiter()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{}); err == nil {
		t.Fatal("the limiter of the given client lets requests through")
	}

	c, err := clientsFrom(&NodeConfig{Client: client})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.nodes.Get(t.Context(), "n1", metav1.GetOptions{}); err != nil || path.Load() != "/api/v1/nodes/n1" {
		t.Errorf("node: got path %v, error %v", path.Load(), err)
	}
	if _, err := c.leases.Get(t.Context(), "n1", metav1.GetOptions{}); err != nil ||
		path.Load() != "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1" {
		t.Errorf("lease: got path %v, error %v", path.Load(), err)
	}
}
