// SPDX-License-Identifier: Apache-2.0

package testapi

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestClearEndsWhatRuns: Clear removes pods at once. It deletes the namespace if a controller would recreate the
// pods.
func TestClearEndsWhatRuns(t *testing.T) {
	a := Start(t)
	for name, owned := range map[string]bool{"nobody's": false, "owned": true} {
		t.Run(name, func(t *testing.T) {
			ns := a.Namespace(t)
			owner, err := a.Client.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var owners []metav1.OwnerReference
			if owned {
				owners = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
			}
			grace := int64(600)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", OwnerReferences: owners}, Spec: corev1.PodSpec{
				NodeName: a.NodeName(t), TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
			if _, err := a.Client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := a.Clear(t.Context(), ns); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Client.CoreV1().Pods(ns).Get(t.Context(), "p", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the pod is still there (%v)", err)
			}
			n, err := a.Client.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
			goes := apierrors.IsNotFound(err) || err == nil && n.DeletionTimestamp != nil
			if want := owned || a.cluster == nil; goes != want {
				t.Errorf("the namespace goes: %v, want %v (%v)", goes, want, err)
			}
		})
	}
	if err := a.Clear(t.Context(), "there-is-none"); err != nil {
		t.Errorf("clear a namespace that is not there: %v", err)
	}
}
