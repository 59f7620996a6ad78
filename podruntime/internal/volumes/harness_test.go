// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// world has the objects that pods refer to, and Volumes on directories of the test.
type world struct {
	*Volumes
	t       *testing.T
	root    string
	maps    map[string]*corev1.ConfigMap
	secrets map[string]*corev1.Secret
	token   node.PodToken
}

func (w *world) ConfigMap(_ context.Context, _ *corev1.Pod, name string) (*corev1.ConfigMap, error) {
	if o := w.maps[name]; o != nil {
		return o, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("configmaps"), name)
}

func (w *world) Secret(_ context.Context, _ *corev1.Pod, name string) (*corev1.Secret, error) {
	if o := w.secrets[name]; o != nil {
		return o, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
}

func (w *world) Token(context.Context, *corev1.Pod, *corev1.ServiceAccountTokenProjection) (node.PodToken, error) {
	return w.token, nil
}

// newWorld makes Volumes that mount nothing, unless change says otherwise.
func newWorld(t *testing.T, change ...func(*Config)) *world {
	t.Helper()
	cfg := Config{Root: filepath.Join(t.TempDir(), "root"), NoMounts: true, SubPaths: true, Allocatable: func() corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi"), corev1.ResourceCPU: resource.MustParse("2")}
	}}
	for _, c := range change {
		c(&cfg)
	}
	v, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		Volumes: v, t: t, root: filepath.Dir(v.pods), maps: map[string]*corev1.ConfigMap{}, secrets: map[string]*corev1.Secret{},
		token: node.PodToken{Token: "token-1", RefreshAt: time.Now().Add(time.Hour)},
	}
	v.UseObjects(w)
	v.UseTokens(w)
	t.Cleanup(func() {
		uids, err := v.Pods()
		if err != nil {
			t.Error(err)
		}
		for _, uid := range uids {
			if err := v.Remove(uid); err != nil {
				t.Error(err)
			}
		}
		if v.memory != "" {
			os.Remove(v.memory)
		}
	})
	return w
}

// mounting makes Volumes that mount, or skips the test.
func mounting(t *testing.T, change ...func(*Config)) *world {
	t.Helper()
	w := newWorld(t, append(change, func(c *Config) { c.NoMounts = false })...)
	if !w.mounts {
		t.Skip("this needs the right to mount")
	}
	return w
}

func (w *world) setup(pod *corev1.Pod) {
	w.t.Helper()
	if _, err := w.Setup(w.t.Context(), pod); err != nil {
		w.t.Fatal(err)
	}
}

// dir returns the directory of a volume.
func (w *world) dir(pod *corev1.Pod, name string) string {
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Name == name {
			return w.volumeDir(pod.UID, name, onMemory(&pod.Spec.Volumes[i]))
		}
	}
	return ""
}

// at returns the target of a mount.
func at(m *runtimeapi.Mount) string {
	return filepath.Join(m.HostPath, m.ImageSubPath)
}

func (w *world) read(path ...string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		w.t.Error(err)
	}
	return string(data)
}

func (w *world) mode(path ...string) os.FileMode {
	w.t.Helper()
	info, err := os.Stat(filepath.Join(path...))
	if err != nil {
		w.t.Fatal(err)
	}
	return info.Mode()
}

// podOf returns a pod with volumes. Its container "c" mounts each volume at /<name>.
func podOf(uid string, volumes ...corev1.Volume) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: types.UID(uid), Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}, Volumes: volumes},
	}
	for _, v := range volumes {
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: "/" + v.Name})
	}
	return pod
}

func emptyDir(name string, medium corev1.StorageMedium, limit string) corev1.Volume {
	source := &corev1.EmptyDirVolumeSource{Medium: medium}
	if limit != "" {
		q := resource.MustParse(limit)
		source.SizeLimit = &q
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: source}}
}

func configMapVolume(name, object string, items ...corev1.KeyToPath) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: object}, Items: items,
	}}}
}

func secretVolume(name, object string, items ...corev1.KeyToPath) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: object, Items: items}}}
}

func hostPathVolume(name, path string, kind corev1.HostPathType) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &kind}}}
}

func fieldItem(path, field string) corev1.DownwardAPIVolumeFile {
	return corev1.DownwardAPIVolumeFile{Path: path, FieldRef: &corev1.ObjectFieldSelector{FieldPath: field}}
}

func resourceItem(path, name string) corev1.DownwardAPIVolumeFile {
	return corev1.DownwardAPIVolumeFile{Path: path, ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: "c", Resource: name}}
}
