// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultproxy"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
)

// TestFault24SlowConfigMapsChangeNoEnvironment: a pod's optional ConfigMap and Secret are slow to read. The pod still gets its whole
// environment.
func TestFault24SlowConfigMapsChangeNoEnvironment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"colour": "blue"}}
	if _, err := w.api.Client.CoreV1().ConfigMaps(w.namespace).Create(t.Context(), settings, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "credentials"}, StringData: map[string]string{"password": "hidden"}}
	if _, err := w.api.Client.CoreV1().Secrets(w.namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const n = 10
	warm := w.start()
	w.createConfigured("warm", n)
	w.awaitRunning(n)
	warm.stop()

	const delay = 2 * time.Second
	w.createConfigured("cold", n)
	slow := func(r faultproxy.Request) bool { return r.Resource == "configmaps" || r.Resource == "secrets" }
	defer w.proxy.Inject(faultproxy.Fault{On: slow, Delay: delay})()
	w.start()
	w.awaitRunning(2 * n)
	want := w.environment("warm-0000")
	if want["COLOUR"] != "blue" || want["PASSWORD"] != "hidden" || want["ALL_colour"] != "blue" {
		t.Errorf("environment after a warm start: got %v", want)
	}
	wrong := 0
	for _, name := range append(numbered("warm", n), numbered("cold", n)...) {
		if got := w.environment(name); !reflect.DeepEqual(got, want) {
			wrong++
			t.Errorf("environment of pod %s: got %v, want %v", name, got, want)
		}
	}
	w.createdOnce(append(numbered("warm", n), numbered("cold", n)...))
	faultrow.Record(t, 24, fmt.Sprintf("answers about ConfigMaps and Secrets %v late at the start of a daemon with %d pods that name optional ones", delay, n),
		"pods created with another environment than after a warm start %d of %d", wrong, n)
}

// createConfigured creates pods whose environment comes from an optional ConfigMap and an optional Secret.
func (w *world) createConfigured(prefix string, n int) {
	w.Helper()
	optional := true
	settings, credentials := corev1.LocalObjectReference{Name: "settings"}, corev1.LocalObjectReference{Name: "credentials"}
	for _, name := range numbered(prefix, n) {
		pod := w.pod(name)
		pod.Spec.Containers[0].Env = []corev1.EnvVar{
			{Name: "COLOUR", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
				LocalObjectReference: settings, Key: "colour", Optional: &optional,
			}}},
			{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: credentials, Key: "password", Optional: &optional,
			}}},
		}
		pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{
			Prefix: "ALL_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: settings, Optional: &optional},
		}}
		w.create(pod)
	}
}

// environment returns the environment of a pod at the backend.
func (w *world) environment(name string) map[string]string {
	w.Helper()
	pod := w.backend.Has(w.key(name))
	if pod == nil {
		w.Fatalf("the backend does not have pod %s", name)
	}
	out := map[string]string{}
	for _, v := range pod.Spec.Containers[0].Env {
		out[v.Name] = v.Value
	}
	return out
}
