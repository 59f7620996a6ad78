// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// TestNamesAreNoPaths checks every name of a pod that a provider uses in a path: an API server must accept it,
// too.
func TestNamesAreNoPaths(t *testing.T) {
	const out = "../../x"
	items := []corev1.KeyToPath{{Key: "key", Path: "dir/file"}}
	good := func() wire.Retrieved {
		pod := aPod("u1")
		pod.Spec.InitContainers = []corev1.Container{{Name: "first"}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "m", SubPath: "dir/file"}, {Name: "s"}}
		pod.Spec.Volumes = []corev1.Volume{
			{Name: "m", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}}},
			{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "own"}}},
		}
		pod.Spec.Volumes[0].ConfigMap.Items, pod.Spec.Volumes[1].Secret.Items = append(items[:0:0], items...), append(items[:0:0], items...)
		return wire.Retrieved{Pod: pod, Containers: []wire.Container{{
			ConfigMaps: []corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: "kube-root-ca.crt"}, Data: map[string]string{"ca.crt": ""}}},
			Secrets:    []corev1.Secret{{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Data: map[string][]byte{"key": nil}}},
		}}}
	}
	if _, err := newRecord(good()); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(in *wire.Retrieved, spec *corev1.PodSpec){
		"namespace":      func(in *wire.Retrieved, _ *corev1.PodSpec) { in.Pod.Namespace = out },
		"name":           func(in *wire.Retrieved, _ *corev1.PodSpec) { in.Pod.Name = out },
		"container":      func(_ *wire.Retrieved, s *corev1.PodSpec) { s.Containers[0].Name = out },
		"init container": func(_ *wire.Retrieved, s *corev1.PodSpec) { s.InitContainers[0].Name = ".." },
		"ephemeral container": func(_ *wire.Retrieved, s *corev1.PodSpec) {
			s.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: out}}}
		},
		"mount":              func(_ *wire.Retrieved, s *corev1.PodSpec) { s.Containers[0].VolumeMounts[0].Name = out },
		"subPath":            func(_ *wire.Retrieved, s *corev1.PodSpec) { s.Containers[0].VolumeMounts[0].SubPath = "a/../../x" },
		"volume":             func(_ *wire.Retrieved, s *corev1.PodSpec) { s.Volumes[0].Name = out },
		"ConfigMap":          func(_ *wire.Retrieved, s *corev1.PodSpec) { s.Volumes[0].ConfigMap.Name = out },
		"key":                func(_ *wire.Retrieved, s *corev1.PodSpec) { s.Volumes[0].ConfigMap.Items[0].Key = out },
		"path":               func(_ *wire.Retrieved, s *corev1.PodSpec) { s.Volumes[0].ConfigMap.Items[0].Path = "/etc/x" },
		"Secret":             func(_ *wire.Retrieved, s *corev1.PodSpec) { s.Volumes[1].Secret.SecretName = out },
		"path of a Secret":   func(_ *wire.Retrieved, s *corev1.PodSpec) { s.Volumes[1].Secret.Items[0].Path = out },
		"ConfigMap as sent":  func(in *wire.Retrieved, _ *corev1.PodSpec) { in.Containers[0].ConfigMaps[0].Name = out },
		"its key":            func(in *wire.Retrieved, _ *corev1.PodSpec) { in.Containers[0].ConfigMaps[0].Data[out] = "" },
		"Secret as sent":     func(in *wire.Retrieved, _ *corev1.PodSpec) { in.Containers[0].Secrets[0].Name = out },
		"key of that Secret": func(in *wire.Retrieved, _ *corev1.PodSpec) { in.Containers[0].Secrets[0].Data[out] = nil },
	} {
		in := good()
		spoil(&in, &in.Pod.Spec)
		if _, err := newRecord(in); !errdefs.IsInvalidInput(err) {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
}
