// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestMetricsServerMayScrapeWithAToken: a service account with the role of metrics-server, which may only get
// nodes/metrics, can scrape the node. A second account may only get nodes/pods, and can list the node's pods.
func TestMetricsServerMayScrapeWithAToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.startProgram("127.0.0.1", w.api.NodeCredentials(t, w.nodeName))
	node := w.awaitNode("is ready", nodeReady)
	w.startPod(w.pod("web"))
	server := fmt.Sprintf("https://127.0.0.1:%d", node.Status.DaemonEndpoints.KubeletEndpoint.Port)
	scraper, lister := w.accountFor("metrics"), w.accountFor("pods")

	resp := w.answer(t, scraper, server+"/metrics/resource")
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		t.Fatalf("GET /metrics/resource: got %s, %s", resp.Status, resp.Header.Get("Content-Type"))
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Fatalf("the metrics cannot be read: %v", err)
	}
	for _, name := range []string{"node_cpu_usage_seconds_total", "node_memory_working_set_bytes", "container_cpu_usage_seconds_total", "container_memory_working_set_bytes"} {
		if families[name] == nil {
			t.Errorf("metric %s is missing", name)
		}
	}
	own := w.answer(t, scraper, server+"/metrics")
	defer own.Body.Close()
	if families, err = parser.TextToMetricFamilies(own.Body); err != nil {
		t.Fatalf("the metrics of the node cannot be read: %v", err)
	}
	for _, name := range []string{"rest_client_requests_total", "rest_client_request_duration_seconds", "process_cpu_seconds_total", "kubelet_node_name"} { // that dashboards have of kubelets
		if families[name] == nil {
			t.Errorf("metric %s is missing", name)
		}
	}
	for path, want := range map[string][2]int{ // the status codes for the two accounts
		"/metrics":          {200, 403},
		"/metrics/cadvisor": {200, 403},
		"/metrics/probes":   {200, 403},
		"/metrics/slis":     {200, 403},
		"/pods":             {403, 200},
		"/runningpods/":     {403, 200},
		"/stats/summary":    {403, 403},
		"/healthz":          {403, 403},
		"/configz":          {403, 403},
		"/containerLogs/" + w.key("web") + "/main":   {403, 403},
		"/exec/" + w.key("web") + "/main?command=id": {403, 403},
		"/metrics/../exec/" + w.key("web") + "/main": {403, 403},
		"/debug/pprof/heap":                          {403, 403},
	} {
		for i, caller := range []*rest.Config{scraper, lister} {
			if got := w.ask(t, caller, http.MethodGet, server+path); got != want[i] {
				t.Errorf("GET %s by the account for nodes/%s: got %d, want %d", path, []string{"metrics", "pods"}[i], got, want[i])
			}
		}
	}
}

// accountFor returns a client configuration with the token of a service account. The account may get one
// subresource of all nodes.
func (w *world) accountFor(subresource string) *rest.Config {
	w.Helper()
	name, ctx := w.namespace+"-"+subresource, w.Context()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes/" + subresource}, Verbs: []string{"get"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: subresource}},
	}
	account, token := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: subresource}}, &authenticationv1.TokenRequest{}
	if _, err := w.client().RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	if _, err := w.client().RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	if _, err := w.client().CoreV1().ServiceAccounts(w.namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	// Wait for the rights, because the node would cache a refusal.
	w.api.AwaitRights(w.T, "system:serviceaccount:"+w.namespace+":"+subresource, "", role.Rules)
	token, err := w.client().CoreV1().ServiceAccounts(w.namespace).CreateToken(ctx, subresource, token, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return bearing(w.api.Config, token.Status.Token)
}

// answer sends a GET. The caller closes the body.
func (w *world) answer(t *testing.T, config *rest.Config, url string) *http.Response {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}
