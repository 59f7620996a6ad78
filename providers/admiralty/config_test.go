// SPDX-License-Identifier: Apache-2.0

package admiralty

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
)

func TestConfigRefusesWhatCannotBe(t *testing.T) {
	for want, c := range map[string]Config{
		"clusterName":        {},
		"clusterName: \"A\"": {ClusterName: "A"},
		"target: ":           {ClusterName: "a", Target: "no label"},
		"targetNamespace":    {ClusterName: "a", TargetNamespace: "no label"},
		"object":             {ClusterName: "a", Object: "Deployment"},
		"namespaces:":        {ClusterName: "a", Namespace: "x", Namespaces: map[string]string{"a": "b"}, Capacity: remotetest.Roomy()},
		"namespaces: a":      {ClusterName: "a", Namespaces: map[string]string{"a": "B"}},
		"constraints":        {ClusterName: "a", Constraints: []string{"priority"}},
		"capacity cpu":       {ClusterName: "a", Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("-1")}},
		"capacity: is":       {ClusterName: "a", Namespace: "x"},
		"qps":                {ClusterName: "a", QPS: -1},
	} {
		if _, err := c.Complete("target-0"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want an error about %s", c, err, want)
		}
	}
	c, err := Config{ClusterName: "a"}.Complete("target-0")
	if err != nil || c.QPS != DefaultQPS || c.Burst != DefaultBurst || len(c.Constraints) != 2 || c.Target != "target-0" || c.ownerKind() != nil {
		t.Errorf("the smallest configuration is %+v (%v)", c, err)
	}
	if _, err := c.Access(); err == nil || !strings.Contains(err.Error(), "kubeconfig") {
		t.Errorf("without a kubeconfig: got %v", err)
	}
}

func TestConstraints(t *testing.T) {
	c, err := Config{ClusterName: "a", Placement: remotecluster.Placement{
		NodeSelector: map[string]string{"pool": "bursts"}, Tolerations: []corev1.Toleration{{Key: "bursts"}}}}.Complete("target-0")
	if err != nil {
		t.Fatal(err)
	}
	pod := func(says string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationConstraints: says}}}
	}
	if got, err := c.PlacePod(pod("")); err != nil || got.NodeSelector["pool"] != "bursts" {
		t.Errorf("a pod that says nothing: got %v, %v", got, err)
	}
	got, err := c.PlacePod(pod(`{"nodeSelector":{"disk":"ssd"}}`))
	if err != nil || got.NodeSelector["disk"] != "ssd" || got.NodeSelector["pool"] != "" || len(got.Tolerations) != 1 {
		t.Errorf("a pod that selects nodes: got %v, %v", got, err)
	}
	for _, refused := range []string{`{"tolerations":[{"operator":"Exists"}]}`, `{"nodeName":"n"}`, `no JSON`} {
		if _, err := c.PlacePod(pod(refused)); !errdefs.IsInvalidInput(err) {
			t.Errorf("%s: got %v, want an error of the kind invalid-input", refused, err)
		}
	}
	c.Constraints = append(c.Constraints, remotecluster.FieldTolerations)
	if got, err := c.PlacePod(pod(`{"tolerations":[{"operator":"Exists"}]}`)); err != nil || got.Tolerations[0].Operator != corev1.TolerationOpExists {
		t.Errorf("tolerations that are allowed: got %v, %v", got, err)
	}
}

func TestAnnotationsAreNamed(t *testing.T) {
	c := Config{Annotations: []string{"note", "example.com/*"}}
	for key, want := range map[string]bool{"note": true, "notes": false, "example.com/a": true, "iam.example.com/role": false} {
		if got := c.showsAnnotation(key); got != want {
			t.Errorf("annotation %s: shown %t, want %t", key, got, want)
		}
	}
}
