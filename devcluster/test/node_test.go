// SPDX-License-Identifier: Apache-2.0

package test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// TestNode plays the life of the smallest node. It registers itself, and the API server reaches it on the
// loopback interface. Both sides check certificates.
func TestNode(t *testing.T) {
	c := newCLI(t)
	c.up()
	const name = "vk-0"
	c.run("node-credentials", name, "--san=vk.example")
	dir := filepath.Join(c.base, "default", "nodes", name)

	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	nodes := client.CoreV1().Nodes()
	if _, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create the own node: %v", err)
	}
	other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "vk-1"}}
	if _, err := nodes.Create(t.Context(), other, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("create another node: got %v, want Forbidden by NodeRestriction", err)
	}

	kubelet := serve(t, dir)
	// This is a patch, because an update would contain the taints at the time of the read, and NodeRestriction
	// lets no node change its taints.
	patch := fmt.Sprintf(`{"status": {
		"addresses": [{"type": "Hostname", "address": %q}, {"type": "InternalIP", "address": "127.0.0.1"}],
		"daemonEndpoints": {"kubeletEndpoint": {"Port": %d}}}}`, name, kubelet.Listener.Addr().(*net.TCPAddr).Port)
	if _, err := nodes.PatchStatus(t.Context(), name, []byte(patch)); err != nil {
		t.Fatalf("patch the own node: %v", err)
	}

	manifest := filepath.Join(t.TempDir(), "pod.yaml")
	if err := os.WriteFile(manifest, []byte(pod), 0o600); err != nil {
		t.Fatal(err)
	}
	c.run("kubectl", "apply", "--filename="+manifest)
	if out := c.run("kubectl", "logs", "p"); out != "/containerLogs/default/p/c for kube-apiserver-kubelet-client\n" {
		t.Errorf("kubectl logs: got %q, want what the node answers to the API server", out)
	}
	out := c.run("kubectl", "auth", "can-i", "create", "nodes", "--subresource=proxy", "--as=kube-apiserver-kubelet-client")
	if strings.TrimSpace(out) != "yes" {
		t.Errorf("may the API server use a node's API? got %q, want yes", out)
	}
	// This is a documented limit of Kubernetes: the API server does not proxy to loopback addresses.
	_, stderr, code := c.try("kubectl", "get", "--raw=/api/v1/nodes/"+name+"/proxy/healthz")
	if code == 0 || !strings.Contains(stderr, "address not allowed") {
		t.Errorf("proxy to the node: got exit code %d and %q, want that the address is not allowed", code, stderr)
	}
}

const pod = `
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default}
spec:
  nodeName: vk-0
  containers: [{name: c, image: i}]
`

// serve starts a kubelet that answers each request with its path and the name in the client certificate.
func serve(t *testing.T, dir string) *httptest.Server {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "kubelet.crt"), filepath.Join(dir, "kubelet.key"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(ca)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.URL.Path+" for "+r.TLS.PeerCertificates[0].Subject.CommonName+"\n")
	}))
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert,
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// TestKubeconfigIsSelfContained: a kubeconfig also works after it was copied to another place on this machine.
func TestKubeconfigIsSelfContained(t *testing.T) {
	c := newCLI(t)
	c.up("--name=copy")
	out := c.run("kubectl", "--name=copy", "config", "view", "--raw", "-o", "json")
	var config map[string]any
	if err := json.Unmarshal([]byte(out), &config); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out, c.base) {
		t.Errorf("the kubeconfig names files: %s", out)
	}
}
