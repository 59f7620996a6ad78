// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testlog"
)

// metricsServerObjects register the metrics-server that listens at PORT of this machine, and a Deployment on
// NODE with a HorizontalPodAutoscaler that uses its measurements.
const metricsServerObjects = `
apiVersion: v1
kind: Service
metadata: {name: metrics-server, namespace: kube-system}
spec: {type: ExternalName, externalName: localhost, ports: [{port: PORT}]}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.k8s.io}
spec:
  service: {name: metrics-server, namespace: kube-system, port: PORT}
  group: metrics.k8s.io
  version: v1beta1
  insecureSkipTLSVerify: true
  groupPriorityMinimum: 100
  versionPriority: 100
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NAMESPACE}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {kubernetes.io/hostname: NODE}
      tolerations: [{operator: Exists}]
      containers: [{name: main, image: web, resources: {requests: {cpu: 100m, memory: 64Mi}}}]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: NAMESPACE}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 3
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
`

// TestPublishedB4MetricsServerMeasuresTheNode runs kubernetes-sigs/metrics-server against a node, registered in
// the API server. A HorizontalPodAutoscaler gets its measurements, and kubectl top shows the node and its pods.
// `make metrics-server-test` builds the program.
func TestPublishedB4MetricsServerMeasuresTheNode(t *testing.T) {
	program := os.Getenv("VK_METRICS_SERVER")
	if program == "" {
		t.Skip("VK_METRICS_SERVER is not set: make metrics-server-test builds metrics-server and sets it")
	}
	w := newWorld(t)
	w.startProgram("127.0.0.1", w.api.NodeCredentials(t, w.nodeName))

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	_ = l.Close() // it is free for the server now
	said := &testlog.Buffer{}
	server := exec.CommandContext(t.Context(), program, "--bind-address=127.0.0.1", "--secure-port="+port, "--cert-dir="+t.TempDir(),
		"--kubeconfig="+w.api.KubeconfigPath, "--authentication-kubeconfig="+w.api.KubeconfigPath, "--authorization-kubeconfig="+w.api.KubeconfigPath,
		"--kubelet-insecure-tls", "--kubelet-preferred-address-types=InternalIP", "--kubelet-use-node-status-port", "--metric-resolution=10s", "--kubelet-request-timeout=5s")
	server.Stdout, server.Stderr = said, said
	server.Cancel = func() error { return server.Process.Signal(syscall.SIGTERM) }
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Wait() // it ends with the context of the test
		if t.Failed() {
			t.Logf("metrics-server said:\n%s", said.Tail())
		}
	})

	u := user{world: w, t: t}
	objects := strings.NewReplacer("PORT", port, "NODE", w.nodeName, "NAMESPACE", w.namespace).Replace(metricsServerObjects)
	all := filepath.Join(t.TempDir(), "objects.yaml") // of two namespaces
	if err := os.WriteFile(all, []byte(objects), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, err := w.api.Kubectl(t, "apply", "-f", all); err != nil {
		t.Fatalf("register metrics-server: %v: %s", err, stderr)
	}
	defer func() {
		if _, stderr, err := w.api.Kubectl(t, "delete", "-f", all, "--ignore-not-found", "--wait=false"); err != nil {
			t.Errorf("remove metrics-server: %v: %s", err, stderr)
		}
	}()
	u.kubectl("wait", "--for=condition=Available", "apiservice/v1beta1.metrics.k8s.io", "--timeout=60s")
	u.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
	u.kubectl("wait", "--for=condition=ScalingActive=True", "hpa/web", "--timeout=180s")
	if top := u.kubectl("top", "node", w.nodeName, "--no-headers"); !strings.HasPrefix(top, w.nodeName) || strings.Contains(top, "<unknown>") {
		t.Errorf("kubectl top node says %q", top)
	} else {
		t.Logf("kubectl top node: %s", top)
	}
	if top := u.kubectl("top", "pod", "--no-headers"); !strings.HasPrefix(top, "web-") {
		t.Errorf("kubectl top pod says %q", top)
	} else {
		t.Logf("kubectl top pod: %s", top)
	}
	t.Logf("the autoscaler: %s", u.kubectl("get", "hpa", "web", "--no-headers"))
}
