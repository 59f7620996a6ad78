// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestWhatASandboxMayKeep: a sandbox may keep a volume in memory only if nothing else needs it, because the host
// cannot see its content.
func TestWhatASandboxMayKeep(t *testing.T) {
	mount := func(change func(*corev1.VolumeMount)) func(*corev1.Container) {
		return func(c *corev1.Container) { change(&c.VolumeMounts[0]) }
	}
	for name, tt := range map[string]struct {
		medium corev1.StorageMedium
		change func(*corev1.Container)
		want   bool
	}{
		"memory":           {corev1.StorageMediumMemory, nil, true},
		"disk":             {"", nil, false},
		"read-only":        {corev1.StorageMediumMemory, mount(func(m *corev1.VolumeMount) { m.ReadOnly = true }), true},
		"a part":           {corev1.StorageMediumMemory, mount(func(m *corev1.VolumeMount) { m.SubPath = "a" }), false},
		"a part by name":   {corev1.StorageMediumMemory, mount(func(m *corev1.VolumeMount) { m.SubPathExpr = "$(A)" }), false},
		"not mounted":      {corev1.StorageMediumMemory, func(c *corev1.Container) { c.VolumeMounts = nil }, false},
		"a mount below it": {corev1.StorageMediumMemory, func(c *corev1.Container) { c.VolumeMounts = append(c.VolumeMounts, below(c)) }, false},
		"a file for the environment": {corev1.StorageMediumMemory, func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "e"}}}}
		}, false},
	} {
		pod := podOf("u", emptyDir("e", tt.medium, ""), emptyDir("other", "", ""))
		if tt.change != nil {
			tt.change(&pod.Spec.Containers[0])
		}
		w := newWorld(t)
		if got := w.InSandbox(pod); got != nil {
			t.Errorf("%s, where nothing is mounted: got %v", name, got)
		}
		w.mounts = true
		var want []string
		if tt.want {
			want = []string{w.volumeDir(pod.UID, "e", true)}
		}
		if got := w.InSandbox(pod); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// below returns a mount inside the first mount of a container.
func below(c *corev1.Container) corev1.VolumeMount {
	return corev1.VolumeMount{Name: "other", MountPath: c.VolumeMounts[0].MountPath + "/below"}
}
