// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testpki"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
)

// darkCreates is a provider whose CreatePod always fails, with an error that contains a value of the pod's environment.
type darkCreates struct {
	*memory
	called chan struct{}
}

func (d darkCreates) CreatePod(_ context.Context, pod *corev1.Pod) error {
	defer func() { d.called <- struct{}{} }()
	return errors.New("cannot start with " + pod.Spec.Containers[0].Env[0].Value + " <b>")
}

// TestDebugPageOfANode: the page has a pod whose create fails, and the reason without the value of its Secret.
func TestDebugPageOfANode(t *testing.T) {
	const secret = "c4n4ry-value"
	ca, m := testpki.New(t), newMemory()
	mux := http.NewServeMux()
	d := darkCreates{m, make(chan struct{}, 100)}
	r := start(t, func(ProviderConfig) (Provider, node.NodeProvider, error) { return d, nil, nil },
		WithTLSConfig(WithKeyPairFromPath(ca.Issue(t, "n1"))), AttachProviderRoutes(mux), WithInsecureUnauthenticatedServer(),
		func(cfg *NodeConfig) error { cfg.Handler = mux; return nil })
	_, err := r.client.CoreV1().Secrets("ns").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Data: map[string][]byte{"k": []byte(secret)}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changes, err := r.client.CoreV1().Pods("ns").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u1", CreationTimestamp: metav1.Now()}, Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{
		Name: "c", Env: []corev1.EnvVar{{Name: "K", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "k"}}}},
	}}}}
	if _, err := r.client.CoreV1().Pods("ns").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitEvent(t, changes, func(p *corev1.Pod) bool { return p.Status.Message != "" })
	n, err := r.client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("https://127.0.0.1:%d/debug/pods", n.Status.DaemonEndpoints.KubeletEndpoint.Port)
	client := clientOf(ca.ClientConfig(t, nil, ""))
	status, body := fetch(t, client, url+"?format=json", "")
	var page api.DebugPage
	if err := json.Unmarshal([]byte(body), &page); err != nil || status != http.StatusOK || len(page.Nodes) != 1 || len(page.Nodes[0].Pods) != 1 {
		t.Fatalf("got %d %v %s", status, err, body)
	}
	got := page.Nodes[0].Pods[0]
	if got.WaitsFor != "the backend to create the pod" || got.Name != "p" || got.UID != "u1" || got.Phase != "Pending" || got.Tries == 0 ||
		!strings.HasPrefix(got.Error, "create pod ns/p: cannot start with [redacted] <b>") || got.Since.IsZero() {
		t.Errorf("the pod is %+v", got)
	}
	if of := page.Nodes[0]; of.Name != "n1" || !of.Healthy || of.Provider != "healthy" || of.Holder != "" {
		t.Errorf("the node is %+v", of)
	}
	status, html := fetch(t, client, url, "")
	if status != http.StatusOK || !strings.Contains(html, "[redacted] &lt;b&gt;") {
		t.Errorf("got %d %s", status, html)
	}
	w := httptest.NewRecorder()
	r.DebugHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/pods", nil))
	if strings.Contains(body+html+w.Body.String(), secret) || !strings.Contains(w.Body.String(), "ns/p") {
		t.Error("the page has the value of a Secret, or lacks the pod")
	}
	if !strings.Contains(html, "Provider calls") {
		t.Errorf("the page has no counters:\n%s", html)
	}
}
