// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// file is a file of a volume.
type file struct {
	data []byte
	mode fs.FileMode
}

// volume is a directory.
type volume struct {
	mu       sync.Mutex
	files    map[string]file // guarded by mu; by path
	readOnly bool
}

func (v *volume) put(name string, data []byte, mode fs.FileMode) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.files == nil {
		v.files = map[string]file{}
	}
	v.files[name] = file{data, mode}
}

// makeVolumes makes the volumes of a pod.
func makeVolumes(pod *corev1.Pod, objects Objects) (map[string]*volume, error) {
	all := map[string]*volume{}
	for i := range pod.Spec.Volumes {
		v, made := &pod.Spec.Volumes[i], &volume{}
		all[v.Name] = made
		var err error
		switch {
		case v.EmptyDir != nil:
		case v.ConfigMap != nil:
			made.readOnly = true
			err = made.configMap(pod, v.ConfigMap, objects)
		case v.Secret != nil:
			made.readOnly = true
			err = made.secret(pod, v.Secret, objects)
		case v.DownwardAPI != nil:
			made.readOnly = true
			made.downward(pod, v.DownwardAPI)
		default:
			err = errdefs.InvalidInput("volumes of this kind are not there")
		}
		if err != nil {
			return nil, fmt.Errorf("volume %s: %w", v.Name, err)
		}
	}
	return all, nil
}

func (v *volume) configMap(pod *corev1.Pod, s *corev1.ConfigMapVolumeSource, objects Objects) error {
	m, err := objects.ConfigMaps.ConfigMaps(pod.Namespace).Get(s.Name)
	if err != nil {
		return err
	}
	data := map[string][]byte{}
	for name, text := range m.Data {
		data[name] = []byte(text)
	}
	v.fill(data, s.Items, s.DefaultMode)
	return nil
}

func (v *volume) secret(pod *corev1.Pod, s *corev1.SecretVolumeSource, objects Objects) error {
	m, err := objects.Secrets.Secrets(pod.Namespace).Get(s.SecretName)
	if err != nil {
		return err
	}
	v.fill(m.Data, s.Items, s.DefaultMode)
	return nil
}

func (v *volume) fill(data map[string][]byte, items []corev1.KeyToPath, defaultMode *int32) {
	if len(items) == 0 {
		for name := range data {
			items = append(items, corev1.KeyToPath{Key: name, Path: name})
		}
	}
	for _, item := range items {
		v.put(item.Path, data[item.Key], modeOf(item.Mode, defaultMode))
	}
}

func (v *volume) downward(pod *corev1.Pod, s *corev1.DownwardAPIVolumeSource) {
	values := fields.Set{"metadata.name": pod.Name, "metadata.namespace": pod.Namespace, "metadata.uid": string(pod.UID)}
	for name, text := range pod.Labels {
		values["metadata.labels['"+name+"']"] = text
	}
	for _, item := range s.Items {
		if item.FieldRef != nil {
			v.put(item.Path, []byte(values[item.FieldRef.FieldPath]), modeOf(item.Mode, s.DefaultMode))
		}
	}
}

func modeOf(modes ...*int32) fs.FileMode {
	for _, m := range modes {
		if m != nil {
			return fs.FileMode(*m)
		}
	}
	return 0o644
}

// place finds where a path of a container is.
func (k *container) place(r *run, name string) (v *volume, inside string, readOnly bool) {
	v, inside = r.files, name
	longest := 0
	for i := range k.spec.VolumeMounts {
		m := &k.spec.VolumeMounts[i]
		rest, ok := strings.CutPrefix(name, m.MountPath)
		if !ok || rest != "" && rest[0] != '/' || len(m.MountPath) < longest {
			continue
		}
		longest = len(m.MountPath)
		v, inside = k.pod.volumes[m.Name], strings.TrimPrefix(path.Join(m.SubPath, rest), "/")
		readOnly = m.ReadOnly || v.readOnly
	}
	return v, inside, readOnly
}

func (k *container) read(r *run, name string) ([]byte, fs.FileMode, error) {
	v, inside, _ := k.place(r, name)
	v.mu.Lock()
	defer v.mu.Unlock()
	f, ok := v.files[inside]
	if !ok {
		return nil, 0, fmt.Errorf("read %s: %w", name, fs.ErrNotExist)
	}
	return f.data, f.mode, nil
}

func (k *container) write(r *run, name string, data []byte) error {
	v, inside, readOnly := k.place(r, name)
	if readOnly {
		return fmt.Errorf("write %s: %w", name, fs.ErrPermission)
	}
	v.put(inside, data, 0o644)
	return nil
}
