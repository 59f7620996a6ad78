// SPDX-License-Identifier: Apache-2.0

package remotecluster

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// changing is a home whose Secret loses its key between two reads.
type changing struct{ password string }

func (changing) ConfigMap(context.Context, *corev1.Pod, string) (*corev1.ConfigMap, error) {
	return &corev1.ConfigMap{}, nil
}

func (changing) Secret(context.Context, *corev1.Pod, string) (*corev1.Secret, error) {
	return &corev1.Secret{}, nil
}

// Container resolves like the node: the variables of services, and the variables that the pod's container names.
func (o changing) Container(_ context.Context, pod *corev1.Pod, name string) (*corev1.Container, error) {
	out := &corev1.Container{Name: name, Env: []corev1.EnvVar{{Name: "KUBERNETES_SERVICE_HOST", Value: "10.0.0.1"}}}
	for _, c := range pod.Spec.Containers {
		if c.Name == name && len(c.EnvFrom) > 0 {
			out.Env = append(out.Env, corev1.EnvVar{Name: "PASSWORD", Value: o.password})
		}
	}
	return out, nil
}

// TestNoValueOfASecretIsInTheSpecOfARemotePod also has a Secret that changes while the pod is created.
func TestNoValueOfASecretIsInTheSpecOfARemotePod(t *testing.T) {
	home := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u1"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", EnvFrom: []corev1.EnvFromSource{{
			SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "login"}},
		}}}}},
	}
	tr, err := Translate(home, Target{Home: Home{Cluster: "c", Node: "n"}, Namespace: "there"})
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{objects: changing{"s3cret"}}
	if err := c.addServices(t.Context(), home, tr); err != nil {
		t.Fatal(err)
	}
	spec := tr.Pod.Spec.String()
	if strings.Contains(spec, "s3cret") || !strings.Contains(spec, "KUBERNETES_SERVICE_HOST") {
		t.Errorf("want the variables of services, and no value of a Secret: %s", spec)
	}
	if len(home.Spec.Containers[0].EnvFrom) != 1 {
		t.Error("the pod at home was changed")
	}
}
