// SPDX-License-Identifier: Apache-2.0

package podenv

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// BenchmarkResolve resolves a pod of three containers with 30 variables each, in
// a namespace with 50 services.
func BenchmarkResolve(b *testing.B) {
	var all []*corev1.Service
	for i := range 50 {
		all = append(all, service("shop", fmt.Sprintf("service-%d", i), "10.0.0.9", corev1.ServicePort{Name: "http", Port: 80}))
	}
	data := map[string]map[string]string{"objects": {}}
	for i := range 20 {
		data["objects"][fmt.Sprintf("KEY_%d", i)] = "value"
	}
	cfg := Config{Objects: &memoryObjects{ConfigMaps: data, Secrets: data}, Services: services(b, all...)}
	c := corev1.Container{EnvFrom: []corev1.EnvFromSource{fromSecret("S_", "objects", nil)}, Args: []string{"--name=$(NAME)"}}
	c.Env = append(c.Env, fieldRef("NAME", "metadata.name"), configMapKey("K", "objects", "KEY_1", nil))
	for i := range 8 {
		c.Env = append(c.Env, literal(fmt.Sprintf("V%d", i), "$(NAME)/$(S_KEY_3)"))
	}
	pod := podWith(c)
	for range 2 {
		pod.Spec.Containers = append(pod.Spec.Containers, *pod.Spec.Containers[0].DeepCopy())
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := Resolve(b.Context(), cfg, pod.DeepCopy()); err != nil {
			b.Fatal(err)
		}
	}
}
