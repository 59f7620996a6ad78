// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestDeploymentScales(t *testing.T) {
	t.Parallel()
	const n = 50
	w := newWorld(t)
	w.start()
	labels := map[string]string{"app": "web"}
	none := int32(0)
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &none,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: w.spec()},
		},
	}
	if _, err := w.client().AppsV1().Deployments(w.namespace).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.scale("web", n)
	w.awaitDeployment("web", n)
	for _, pod := range w.awaitRunning(n) {
		if pod.Spec.NodeName != w.nodeName {
			t.Errorf("pod %s is on node %s, want %s", pod.Name, pod.Spec.NodeName, w.nodeName)
		}
	}
	w.scale("web", 0)
	w.awaitDeployment("web", 0)
	w.awaitNoPods()
	w.awaitEmptyBackend()
	w.cheap()
}

func (w *world) scale(name string, replicas int) {
	w.Helper()
	body := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := w.client().AppsV1().Deployments(w.namespace).Patch(w.Context(), name, types.MergePatchType, body, metav1.PatchOptions{}, "scale")
	if err != nil {
		w.Fatalf("scale deployment %s: %v", name, err)
	}
}

// awaitDeployment waits until the deployment controller reports the given number of ready pods.
func (w *world) awaitDeployment(name string, ready int32) {
	w.Helper()
	q := query{client: w.client().AppsV1().RESTClient(), resource: "deployments", namespace: w.namespace, name: name}
	await(w.T, q, &appsv1.Deployment{}, fmt.Sprintf("deployment %s has %d ready pods", name, ready), func(found []*appsv1.Deployment) bool {
		return len(found) == 1 && found[0].Status.ObservedGeneration == found[0].Generation &&
			found[0].Status.ReadyReplicas == ready && found[0].Status.Replicas == ready
	})
}
