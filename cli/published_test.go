// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// published is a program with the provider names of other virtual kubelet projects.
var published = Program{Name: "virtual-kubelet", Providers: []Provider{
	{Name: "aci", Aliases: []string{"azure"}, New: newEmpty}, {Name: "eci", Aliases: []string{"alibabacloud"}, New: newEmpty},
	{Name: "fargate", Aliases: []string{"aws"}, New: newEmpty}, {Name: "nomad", New: newEmpty}, {Name: "tensilekube", Aliases: []string{"k8s"}, New: newEmpty},
}}

// node runs a program until its node is ready, and returns the node and the log.
func (p Program) node(t *testing.T, name string, args ...string) (*corev1.Node, string) {
	t.Helper()
	api := &apiServer{objects: map[string]runtime.Object{}}
	t.Setenv("KUBECONFIG", startAPIServer(t, api))
	t.Cleanup(func() { // the klog flags are global to the process
		var k klogFlags
		k.define(pflag.NewFlagSet("", pflag.ContinueOnError))
		_ = k.set.Set("v", "0")
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log, done := newOutput(), make(chan int, 1)
	go func() { done <- p.execute(ctx, args, log, log) }()
	log.waitFor(t, "Node is ready", done)
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("the end: got %d\n%s", code, log)
	}
	n := api.nodeCalled(name)
	if n == nil {
		t.Fatalf("there is no node %s:\n%s", name, log)
	}
	return n, log.String()
}

// certificates sets the variables that the published files use for certificates, and returns the client CA file.
func certificates(t *testing.T) (ca string) {
	t.Helper()
	dir := t.TempDir()
	certPEM, keyPEM, err := certOf(t)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"cert.pem": certPEM, "key.pem": keyPEM, "ca.crt": certPEM} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("APISERVER_CERT_LOCATION", filepath.Join(dir, "cert.pem"))
	t.Setenv("APISERVER_KEY_LOCATION", filepath.Join(dir, "key.pem"))
	t.Setenv("VKUBELET_POD_IP", "127.0.0.1")
	t.Setenv("KUBELET_PORT", "0") // the published value is 10250; a fixed port could conflict with other tests
	return filepath.Join(dir, "ca.crt")
}

func taints(n *corev1.Node) (all []string) {
	for _, taint := range n.Spec.Taints {
		all = append(all, taint.ToString())
	}
	return all
}

// The arguments that the chart of azure-aci 1.6.4 renders with its default values. Source: github.com/virtual-kubelet/azure-aci,
// charts/virtual-kubelet/templates/deployment.yaml and values.yaml.
func TestPublishedD1ChartOfAzureACI(t *testing.T) {
	ca := certificates(t)
	t.Setenv("VKUBELET_TAINT_KEY", "virtual-kubelet.io/provider")
	t.Setenv("VKUBELET_TAINT_VALUE", "azure")
	t.Setenv("VKUBELET_TAINT_EFFECT", "NoSchedule")
	t.Setenv("MASTER_URI", "https://cluster.example:443")
	t.Setenv("ACI_EXTRA_USER_AGENT", "helm-chart/aks/virtual-kubelet/1.6.4")
	args := []string{"--provider", "azure", "--namespace", "", "--nodename", "virtual-node-aci-linux-helm", "--authentication-token-webhook=true",
		"--client-verify-ca", ca, "--no-verify-clients=false", "--os", "Linux"}
	n, log := published.node(t, "virtual-node-aci-linux-helm", args...)
	if diff := cmp.Diff([]string{"virtual-kubelet.io/provider=azure:NoSchedule"}, taints(n)); diff != "" {
		t.Error(diff)
	}
	for _, want := range []string{
		"flag --client-verify-ca is deprecated: use --client-ca-file", "environment variable ACI_EXTRA_USER_AGENT has no effect: ",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("%q is not said:\n%s", want, log)
		}
	}
	for _, silent := range []string{"--namespace", "--authentication-token-webhook", "--no-verify-clients"} {
		if strings.Contains(log, silent) {
			t.Errorf("%s asks for what happens anyway, and there is a word about it:\n%s", silent, log)
		}
	}
	// taint.enabled: false
	n, _ = published.node(t, "virtual-node-aci-linux-helm", append([]string{"--disable-taint", "true"}, args...)...)
	if len(n.Spec.Taints) > 0 {
		t.Errorf("--disable-taint true: got %v", taints(n))
	}
	// trace.exporter: ocagent
	var out bytes.Buffer
	if code := published.execute(t.Context(), append(args, "--trace-exporter", "ocagent"), &out, &out); code != 1 || !strings.Contains(out.String(), "flag --trace-exporter is gone: traces are sent by OpenTelemetry: use --trace-endpoint") {
		t.Errorf("--trace-exporter: got %d, %s", code, &out)
	}
}

// Source: github.com/virtual-kubelet/azure-aci, deploy/deployment.yaml: it sets no taint, and the pods of its guides tolerate azure.
func TestPublishedD2DeploymentOfAzureACI(t *testing.T) {
	ca := certificates(t)
	n, _ := published.node(t, "vk-aci-test-aks", "--provider", "azure", "--nodename", "vk-aci-test-aks", "--authentication-token-webhook=true",
		"--client-verify-ca", ca, "--no-verify-clients=false", "--os", "Linux")
	if diff := cmp.Diff([]string{"virtual-kubelet.io/provider=azure:NoSchedule"}, taints(n)); diff != "" {
		t.Error(diff)
	}
	n, _ = published.node(t, "n", "--provider", "aci", "--nodename", "n")
	if diff := cmp.Diff([]string{"virtual-kubelet.io/provider=aci:NoSchedule"}, taints(n)); diff != "" {
		t.Error(diff)
	}
}

// Every flag that azure-aci 1.6.4 declares, with a value.
// Source: github.com/virtual-kubelet/azure-aci, cmd/virtual-kubelet/main.go.
func TestPublishedD3FlagsOfAzureACI(t *testing.T) {
	ca := certificates(t)
	n, log := published.node(t, "n", "--provider=azure", "--nodename=n", "--provider-config=aci.toml", "--cluster-domain=cluster.local", "--startup-timeout=30s",
		"--os=Linux", "--log-level=debug", "--pod-sync-workers=50", "--full-resync-period=0", "--client-verify-ca="+ca, "--no-verify-clients",
		"--authentication-token-webhook=false", "--authentication-token-webhook-cache-ttl=2m", "--authorization-webhook-cache-authorized-ttl=5m",
		"--authorization-webhook-cache-unauthorized-ttl=30s", "--trace-sample-rate=100", "--namespace=default", "--enable-node-lease", "--taint=azure.com/aci", "--klog.v=2")
	if diff := cmp.Diff([]string{"azure.com/aci=azure:NoSchedule"}, taints(n)); diff != "" {
		t.Error(diff)
	}
	for _, want := range []string{
		"--no-verify-clients has no effect", "--authentication-token-webhook has no effect", "--authentication-token-webhook-cache-ttl has no effect",
		"--authorization-webhook-cache-authorized-ttl has no effect", "--authorization-webhook-cache-unauthorized-ttl has no effect",
		"--namespace has no effect", "--enable-node-lease has no effect", "--taint is deprecated: use --taint-key",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("%q is not said:\n%s", want, log)
		}
	}
}

// Source: github.com/virtual-kubelet/tensile-kube, README.md ("deploy the virtual node") and manifeasts/virtual-node.yaml.
func TestPublishedD4CommandOfTensileKube(t *testing.T) {
	certificates(t)
	for _, variable := range []string{"KUBECONFIG", "QPS", "BURST"} {
		t.Setenv("VKUBELET_TENSILEKUBE_"+variable, "") // restores the variable at the end of the test
	}
	n, log := published.node(t, "192.0.2.7", "--nodename", "192.0.2.7", "--provider", "k8s", "--kube-api-qps", "500", "--kube-api-burst", "1000",
		"--client-qps", "400", "--client-burst", "800", "--client-kubeconfig", "/client-kube.config", "--klog.v", "4", "--log-level", "debug")
	if diff := cmp.Diff([]string{"virtual-kubelet.io/provider=k8s:NoSchedule"}, taints(n)); diff != "" {
		t.Error(diff)
	}
	for variable, want := range map[string]string{"KUBECONFIG": "/client-kube.config", "QPS": "400", "BURST": "800"} {
		if got := os.Getenv("VKUBELET_TENSILEKUBE_" + variable); got != want {
			t.Errorf("%s: got %q, want %q", variable, got, want)
		}
	}
	if want := "flag --client-qps is deprecated: use VKUBELET_TENSILEKUBE_QPS"; !strings.Contains(log, want) {
		t.Errorf("%q is not said:\n%s", want, log)
	}
	t.Setenv("DEFAULT_NODE_NAME", "virtual-kubelet")
	manifest := []string{"--provider=k8s", "--nodename=virtual-kubelet", "--disable-taint=true", "--kube-api-qps=500", "--kube-api-burst=1000",
		"--client-qps=500", "--client-burst=1000", "--client-kubeconfig=/etc/kube.config", "--klog.v=5", "--log-level=debug"}
	var out bytes.Buffer
	if code := published.execute(t.Context(), append(slices.Clone(manifest), "--metrics-addr=:10455"), &out, &out); code != 1 || !strings.Contains(out.String(), `--metrics-addr ":10455": want a loopback address`) ||
		!strings.Contains(out.String(), "read /metrics of the kubelet API") {
		t.Errorf("a port that everybody reads: got %d, %s", code, &out)
	}
	if n, _ := published.node(t, "virtual-kubelet", manifest...); len(n.Spec.Taints) > 0 {
		t.Errorf("--disable-taint=true: got %v", taints(n))
	}
}

// The pod of nomad's README tolerates the taint of the node that the README starts: nomad's program does not read VK_TAINT_KEY either.
// Source: github.com/virtual-kubelet/nomad, README.md.
func TestPublishedD5PodOfNomadIsScheduled(t *testing.T) {
	certificates(t)
	t.Setenv("VK_TAINT_KEY", "hashicorp.com/nomad")
	n, log := published.node(t, "virtual-kubelet", "--provider=nomad")
	tolerations := []corev1.Toleration{
		{Key: "virtual-kubelet.io/provider", Operator: corev1.TolerationOpExists}, {Key: "hashicorp.com/nomad", Effect: corev1.TaintEffectNoSchedule},
	}
	for i := range n.Spec.Taints {
		taint := &n.Spec.Taints[i]
		if !slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
			return t.Key == taint.Key && (t.Operator == corev1.TolerationOpExists || t.Value == taint.Value)
		}) {
			t.Errorf("the pod does not tolerate %s", taint.ToString())
		}
	}
	for label, want := range map[string]string{"kubernetes.io/role": "agent", "type": "virtual-kubelet"} {
		if n.Labels[label] != want {
			t.Errorf("label %s: got %q, want %q", label, n.Labels[label], want)
		}
	}
	if want := "environment variable VK_TAINT_KEY has no effect"; !strings.Contains(log, want) || !strings.Contains(log, "use --taint-key") {
		t.Errorf("%q is not said:\n%s", want, log)
	}
}

// Source: github.com/virtual-kubelet/alibabacloud-eci, README.md; github.com/virtual-kubelet/aws-fargate, README.md.
func TestPublishedD6CommandsOfECIAndFargate(t *testing.T) {
	certificates(t)
	n, _ := published.node(t, "virtual-kubelet", "--provider", "aws", "--provider-config", "fargate.toml")
	if diff := cmp.Diff([]string{"virtual-kubelet.io/provider=aws:NoSchedule"}, taints(n)); diff != "" {
		t.Error(diff)
	}
	t.Setenv("VKUBELET_TAINT_KEY", "alibabacloud.com/eci")
	n, _ = published.node(t, "virtual-kubelet", "--provider", "alibabacloud")
	if diff := cmp.Diff([]string{"alibabacloud.com/eci=alibabacloud:NoSchedule"}, taints(n)); diff != "" {
		t.Error(diff)
	}
	// None of them names a certificate: the error says so, with the settings for it.
	t.Setenv("APISERVER_CERT_LOCATION", "")
	t.Setenv("APISERVER_KEY_LOCATION", "")
	var out bytes.Buffer
	if code := published.execute(t.Context(), []string{"--provider", "aws"}, &out, &out); code != 1 || !strings.Contains(out.String(), "--self-signed-serving-certificate") {
		t.Errorf("without a certificate: got %d, %s", code, &out)
	}
}
