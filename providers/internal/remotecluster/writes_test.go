// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
)

// TestOneWriteForManyPods checks many pods that name one ConfigMap and one Secret, with a late watch. Each object is written once, and
// again after it was changed or removed.
func TestOneWriteForManyPods(t *testing.T) {
	c, err := New(Config{Home: testHome, REST: &rest.Config{Host: "http://127.0.0.1:1"}, Capacity: corev1.ResourceList{}})
	if err != nil {
		t.Fatal(err)
	}
	client := kubefake.NewClientset()
	c.client, c.cache = client, newCache(client, testHome, "", nil) // the cache does not run, so the watch shows nothing
	meta := metav1.ObjectMeta{Namespace: "r", Name: "copy"}
	put := func(value string) (writes int) {
		t.Helper()
		client.ClearActions()
		for range 3 {
			if err := c.copies.putConfigMap(t.Context(), &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"key": value}}); err != nil {
				t.Fatal(err)
			}
			if err := c.copies.putSecret(t.Context(), &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"key": []byte(value)}}); err != nil {
				t.Fatal(err)
			}
		}
		return len(client.Actions())
	}
	if n := put("one"); n != 2 {
		t.Errorf("%d writes of two objects for three pods, want one of each", n)
	}
	if n := put("two"); n != 2 {
		t.Errorf("%d writes when both have changed, want one of each", n)
	}
	for _, kind := range []string{KindConfigMap, KindSecret} {
		c.copies.removeCopy(t.Context(), object{kind, "r", "copy"}, &metav1.ObjectMeta{})
	}
	if n := put("two"); n != 2 {
		t.Errorf("%d writes when both were removed, want one of each", n)
	}
	if m, err := client.CoreV1().ConfigMaps("r").Get(t.Context(), "copy", metav1.GetOptions{}); err != nil || m.Data["key"] != "two" {
		t.Errorf("the copy is %v (%v), want the last value", m, err)
	}
}
