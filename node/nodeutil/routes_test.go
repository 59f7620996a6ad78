// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// TestProviderRoutes runs a node as users' programs do. It sends requests as the API server would: to the port
// in the Node object.
func TestProviderRoutes(t *testing.T) {
	ca := testpki.New(t)
	m := newMemory()
	mux := http.NewServeMux()
	r := start(t, m.asProvider,
		WithTLSConfig(WithKeyPairFromPath(ca.Issue(t, "n1"))),
		AttachProviderRoutes(mux),
		func(cfg *NodeConfig) error {
			cfg.Handler = api.InstrumentHandler(WithAuth(NoAuth(), mux))
			return nil
		})
	n, err := r.client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	port := n.Status.DaemonEndpoints.KubeletEndpoint.Port
	if port == 0 {
		t.Fatal("the node does not say the port of its server")
	}
	base := fmt.Sprintf("https://127.0.0.1:%d", port)

	changes, err := r.client.CoreV1().Pods("ns").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u1", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "someone"}}},
		Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c"}}},
	}
	if _, err := r.client.CoreV1().Pods("ns").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitEvent(t, changes, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })

	client := clientOf(ca.ClientConfig(t, nil, ""))
	for _, tc := range []struct {
		path   string
		status int
		body   string
	}{
		{"/pods", 200, `"name":"p"`},
		{"/runningpods/", 200, `"name":"p"`},
		{"/healthz", 200, ""},
		{"/healthz/syncloop", 200, "ok"},
		{"/readyz", 200, "ok"},
		{"/livez?verbose", 200, "[+]node ok"},
		{"/configz", 200, `{"kubeletconfig":{"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1"`},
		{"/configz", 200, `"port":` + strconv.Itoa(int(port))},
		{"/configz", 200, `"tlsMinVersion":"VersionTLS12"`},
		{"/statusz", 200, "Paths: "},
		{"/flagz", 404, ""},
		{"/debug/pprof/heap", 501, "profiling"},
		{"/metrics/cadvisor", 200, ""},
		{"/metrics/probes", 200, "prober_probe_total 3"},
		{"/metrics", 200, ""},
		{"/stats/summary", 200, "{"},
		{"/containerLogs/ns/p/c", 200, "log of p"},
		{"/containerLogs/ns/p/other", 404, ""},
		{"/containerLogs/ns/nobody/c", 404, ""},
		{"/unknown", 404, ""},
	} {
		status, body := fetch(t, client, base+tc.path, "")
		if status != tc.status || !strings.Contains(body, tc.body) {
			t.Errorf("%s: got %d %.200s, want %d with %s", tc.path, status, body, tc.status, tc.body)
		}
		if strings.Contains(body, "managedFields") {
			t.Errorf("%s: managed fields are kept in memory", tc.path)
		}
	}

	// An exec runs while the node stops.
	target, err := url.Parse(base + "/exec/ns/p/c?command=sleep&output=1")
	if err != nil {
		t.Fatal(err)
	}
	exec, err := remotecommand.NewSPDYExecutor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, http.MethodPost, target)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- exec.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &bytes.Buffer{}})
	}()
	select {
	case <-m.execs:
	case err := <-ended:
		t.Fatalf("exec: %v", err)
	}
	begin := time.Now()
	r.stop()
	<-r.Done()
	if took := time.Since(begin); took > 4*time.Second {
		t.Errorf("Run took %s to end although the exec follows its context", took)
	}
	if err := <-ended; err == nil {
		t.Error("the client of the exec was told that its command succeeded")
	}
}
