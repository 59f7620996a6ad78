// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// TestNodeHasWhatThePluginTells checks that the node has the values that the plugin reports, from the start and
// after changes, and otherwise the values of the configuration.
func TestNodeHasWhatThePluginTells(t *testing.T) {
	var answer atomic.Value
	answer.Store(`{"status":"ok","resources":{"cpu":"12","memory":"many","accelerators":[{"resourceType":"nvidia.com/gpu","available":2},{"resourceType":"nvidia.com/gpu","available":"1"}]},
		"taints":[{"key":"site","value":"a","effect":"NoSchedule"},{"key":"odd","effect":"Perhaps"}]}`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/pinglink" {
			t.Errorf("got %s %s", r.Method, r.URL.Path)
		}
		fmt.Fprint(w, answer.Load())
	}))
	defer server.Close()
	p, err := openProvider(cli.ProviderInput{ProviderConfig: nodeutil.ProviderConfig{}}, Config{URL: server.URL, upstream: true, Labels: map[string]string{"a": "b"}})
	if err != nil {
		t.Fatal(err)
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "vk"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: taintOwn, Effect: corev1.TaintEffectNoSchedule}}}}
	p.ConfigureNode(t.Context(), n)
	if !isReady(n) {
		t.Errorf("the node is not Ready: %v", n.Status.Conditions)
	}
	n.Status.DaemonEndpoints.KubeletEndpoint.Port = 10250 // the port is known only later
	gpus := n.Status.Capacity["nvidia.com/gpu"]
	if n.Status.Capacity.Cpu().Value() != 12 || n.Status.Capacity.Memory().String() != "3T" || gpus.Value() != 3 {
		t.Errorf("capacity %v", n.Status.Capacity)
	}
	var taints []string
	for _, taint := range n.Spec.Taints {
		taints = append(taints, taint.Key)
	}
	if !slices.Equal(taints, []string{taintUpstream, "site"}) || n.Labels["a"] != "b" || n.Labels[labelType] == "" {
		t.Errorf("taints %v, labels %v", taints, n.Labels)
	}
	var told []*corev1.Node
	p.NotifyNodeStatus(t.Context(), func(n *corev1.Node) { told = append(told, n) })
	if err := p.Ping(t.Context()); err != nil || len(told) != 0 {
		t.Errorf("nothing new: %v, %d reports", err, len(told))
	}
	answer.Store(`{"resources":{"cpu":"8"}}`)
	if err := p.Ping(t.Context()); err != nil || len(told) != 1 || told[0].Status.Allocatable.Cpu().Value() != 8 ||
		told[0].Status.DaemonEndpoints.KubeletEndpoint.Port != 10250 || !isReady(told[0]) {
		t.Errorf("less is there: %v, %v", err, told)
	}
	for _, nothing := range []string{"[]", "null", "", "0", "{}"} {
		answer.Store(nothing)
		if err := p.Ping(t.Context()); err != nil || len(told) != 1 {
			t.Errorf("a plugin that tells nothing, %q: %v, %v", nothing, err, told)
		}
	}
	for _, wrong := range []string{"503", "<html>log in</html>", `{"resources":{"cpu":4}}`, `{"resources"`} {
		answer.Store(wrong)
		if err := p.Ping(t.Context()); err == nil || len(told) != 1 {
			t.Errorf("no answer of a plugin, %q: %v, %v", wrong, err, told)
		}
	}
}

// TestNodeStaysValid checks that values that are invalid on a node are left out with a warning, so that the node
// as a whole is not refused.
func TestNodeStaysValid(t *testing.T) {
	taints, wrong := taintsOf([]wire.Taint{
		{Key: "site", Value: "a", Effect: "NoSchedule"}, {Key: "site", Value: "b", Effect: "NoSchedule"}, {Key: "site", Effect: "NoExecute"},
		{Key: "not a key", Effect: "NoSchedule"}, {Key: "", Effect: "NoSchedule"}, {Key: "odd", Value: "not a value", Effect: "NoSchedule"},
	})
	if len(taints) != 2 || taints[0].Value != "a" || len(wrong) != 4 {
		t.Errorf("taints %v, warnings %q", taints, wrong)
	}
	all, wrong := Config{Capacity: corev1.ResourceList{}}.capacity(&wire.Resources{CPU: "1500m", Memory: "1G", Pods: "1.5", Accelerators: []wire.Accelerator{
		{ResourceType: "nvidia.com/gpu", Available: "2"}, {ResourceType: "a.com/half", Available: "500m"}, {ResourceType: "gpu", Available: "1"},
		{ResourceType: "a b/gpu", Available: "1"}, {ResourceType: "", Available: "1"}, {ResourceType: "cpu", Available: "1"},
	}})
	if gpus := all["nvidia.com/gpu"]; len(all) != 3 || gpus.Value() != 2 || all.Cpu().MilliValue() != 1500 || len(wrong) != 6 {
		t.Errorf("capacity %v, warnings %q", all, wrong)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"taints":[{"key":"site","value":"b","effect":"NoSchedule"}]}`)
	}))
	defer server.Close()
	own := corev1.Taint{Key: "site", Value: "a", Effect: corev1.TaintEffectNoSchedule}
	p, err := openProvider(cli.ProviderInput{}, Config{URL: server.URL, Taints: []corev1.Taint{own}})
	if err != nil {
		t.Fatal(err)
	}
	n := &corev1.Node{}
	if p.ConfigureNode(t.Context(), n); !slices.Equal(n.Spec.Taints, []corev1.Taint{own}) {
		t.Errorf("taints %v, want that of the configuration", n.Spec.Taints)
	}
}

// isReady reports whether the node has exactly one condition Ready and that is true.
func isReady(n *corev1.Node) bool {
	var all []corev1.ConditionStatus
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			all = append(all, c.Status)
		}
	}
	return slices.Equal(all, []corev1.ConditionStatus{corev1.ConditionTrue})
}
