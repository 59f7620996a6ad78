// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

func TestConfigRefusesWhatCannotBe(t *testing.T) {
	for want, c := range map[string]Config{
		"clusterName":         {},
		"clusterName: \"A\"":  {ClusterName: "A"},
		"namespaces:":         {ClusterName: "a", Namespace: "x", Namespaces: map[string]string{"a": "b"}},
		"namespaces: a":       {ClusterName: "a", Namespaces: map[string]string{"a": "B"}},
		"globalServices:":     {ClusterName: "a", Namespace: "x", GlobalServices: true},
		"namespaces: a and c": {ClusterName: "a", GlobalServices: true, Namespaces: map[string]string{"c": "x", "b": "y", "a": "x"}},
		"storageClasses: a":   {ClusterName: "a", StorageClasses: map[string]string{"a": ""}},
		"clusterSelector":     {ClusterName: "a", ClusterSelector: []string{"priority"}},
		"capacity cpu":        {ClusterName: "a", Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("-1")}},
		"capacity: is":        {ClusterName: "a", Namespace: "x"},
		"qps":                 {ClusterName: "a", QPS: -1},
	} {
		if _, err := c.completeConfig(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want an error about %s", c, err, want)
		}
	}
	c, err := Config{ClusterName: "a"}.completeConfig()
	if err != nil || c.QPS != DefaultQPS || c.Burst != DefaultBurst || len(c.ClusterSelector) != 3 {
		t.Errorf("the smallest configuration is %+v (%v)", c, err)
	}
	if _, err := c.lowerAccess(); err == nil || !strings.Contains(err.Error(), "kubeconfig") {
		t.Errorf("without a kubeconfig: got %v", err)
	}
}

func TestClusterSelector(t *testing.T) {
	c, err := Config{ClusterName: "a", Placement: remotecluster.Placement{
		NodeSelector: map[string]string{"pool": "bursts"}, Tolerations: []corev1.Toleration{{Key: "bursts"}}}}.completeConfig()
	if err != nil {
		t.Fatal(err)
	}
	pod := func(says string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotationSelector: says}}}
	}
	if got, err := c.podPlacement(pod("")); err != nil || got.NodeSelector["pool"] != "bursts" {
		t.Errorf("a pod that says nothing: got %v, %v", got, err)
	}
	got, err := c.podPlacement(pod(`{"nodeSelector":{"disk":"ssd"}}`))
	if err != nil || got.NodeSelector["disk"] != "ssd" || got.NodeSelector["pool"] != "" || len(got.Tolerations) != 1 {
		t.Errorf("a pod that selects nodes: got %v, %v", got, err)
	}
	for _, refused := range []string{`{"nodeName":"n"}`, `no JSON`} {
		if _, err := c.podPlacement(pod(refused)); !errdefs.IsInvalidInput(err) {
			t.Errorf("%s: got %v, want an error of the kind invalid-input", refused, err)
		}
	}
	c.ClusterSelector = []string{remotecluster.FieldNodeSelector, remotecluster.FieldAffinity}
	if _, err := c.podPlacement(pod(`{"tolerations":[{"operator":"Exists"}]}`)); !errdefs.IsInvalidInput(err) {
		t.Errorf("tolerations that are not allowed: got %v, want an error of the kind invalid-input", err)
	}
}

// Tensile Kube's webhook writes this annotation for each pod. Source: github.com/virtual-kubelet/tensile-kube,
// README.md ("webhook").
func TestPublishedD7TolerationsOfTheWebhookAreObeyed(t *testing.T) {
	c, err := Config{ClusterName: "a", Placement: remotecluster.Placement{
		NodeSelector: map[string]string{"pool": "bursts"}, Tolerations: []corev1.Toleration{{Key: "bursts", Operator: corev1.TolerationOpExists}}}}.completeConfig()
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.podPlacement(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotationSelector: `{"tolerations":[` +
		`{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute"},` +
		`{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute"},` +
		`{"key":"test","operator":"Exists","effect":"NoExecute"}]}`}}})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, toleration := range got.Tolerations {
		keys = append(keys, toleration.Key)
	}
	want := []string{"bursts", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "test"}
	if diff := cmp.Diff(want, keys); diff != "" || got.NodeSelector["pool"] != "bursts" {
		t.Errorf("got %+v\n%s", got, diff)
	}
}

func TestAnnotationsAreNamed(t *testing.T) {
	c := Config{Annotations: []string{"note", "example.com/*"}}
	for key, want := range map[string]bool{"note": true, "notes": false, "example.com/a": true, "iam.example.com/role": false} {
		if got := c.showsAnnotation(key); got != want {
			t.Errorf("annotation %s: shown %t, want %t", key, got, want)
		}
	}
	if (Config{}).showsAnnotation("note") {
		t.Error("an annotation that nobody named is shown")
	}
}
