// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

// file is a file of a volume.
type file struct {
	data []byte
	mode fs.FileMode
}

// volume is a directory.
type volume struct {
	mu       sync.Mutex
	files    map[string]file // guarded by mu; keyed by path
	readOnly bool
}

func (v *volume) putFile(name string, data []byte, mode fs.FileMode) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.files == nil {
		v.files = map[string]file{}
	}
	v.files[name] = file{data, mode}
}

// makeVolumes makes the volumes of a pod.
func makeVolumes(ctx context.Context, pod *corev1.Pod, objects Objects) (map[string]*volume, error) {
	all := map[string]*volume{}
	from := podspec.Sources{Objects: objects}
	for i := range pod.Spec.Volumes {
		v, made := &pod.Spec.Volumes[i], &volume{}
		all[v.Name] = made
		if v.EmptyDir != nil {
			continue
		}
		files, _, err := from.Files(ctx, pod, v, field.NewPath("spec", "volumes").Index(i))
		if err != nil {
			return nil, fmt.Errorf("volume %s: %w", v.Name, err)
		}
		made.readOnly = true
		for _, f := range files {
			made.putFile(f.Path, f.Data, f.Mode)
		}
	}
	return all, nil
}

// findVolume finds the volume behind a path of a container.
func (k *container) findVolume(r *run, name string) (v *volume, inside string, readOnly bool) {
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
	v, inside, _ := k.findVolume(r, name)
	v.mu.Lock()
	defer v.mu.Unlock()
	f, ok := v.files[inside]
	if !ok {
		return nil, 0, fmt.Errorf("read %s: %w", name, fs.ErrNotExist)
	}
	return f.data, f.mode, nil
}

func (k *container) write(r *run, name string, data []byte) error {
	v, inside, readOnly := k.findVolume(r, name)
	if readOnly {
		return fmt.Errorf("write %s: %w", name, fs.ErrPermission)
	}
	v.putFile(inside, data, 0o644)
	return nil
}
