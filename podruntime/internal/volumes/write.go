// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"context"
	"os"
	"path"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

// currentFile returns the current content of a volume's file, or nil if there is none.
func (v *Volumes) currentFile(pod *corev1.Pod, volume *corev1.Volume, name string) []byte {
	root, err := os.OpenRoot(v.volumeDir(pod.UID, volume.Name, onMemory(volume)))
	if err != nil {
		return nil
	}
	defer root.Close()
	data, err := root.ReadFile(path.Join(currentLink, path.Clean("/"+name)))
	if err != nil {
		return nil
	}
	return data
}

// writeVolume updates a volume that is written from the API. It detects errors of the sources before it changes anything.
func (v *Volumes) writeVolume(ctx context.Context, pod *corev1.Pod, i int) (time.Time, error) {
	volume := &pod.Spec.Volumes[i]
	sources := podspec.Sources{
		Objects: v.objects, Tokens: v.tokens, Bundles: v.bundles, Certificates: v.certs, Allocatable: v.cfg.Allocatable,
		Had: func(path string) []byte { return v.currentFile(pod, volume, path) },
	}
	files, again, err := sources.Files(ctx, pod, volume, field.NewPath("spec", "volumes").Index(i))
	if err != nil {
		return again, err
	}
	memory := onMemory(volume)
	if err := v.makeDirectory(pod, volume.Name, memory, 0); err != nil {
		return again, err
	}
	root, err := os.OpenRoot(v.volumeDir(pod.UID, volume.Name, memory))
	if err != nil {
		return again, err
	}
	defer root.Close()
	if group := fsGroup(pod); group != nil {
		if err := giveOne(root, ".", *group, true); err != nil {
			return again, err
		}
	}
	for _, dir := range nestedMounts(pod, volume.Name) {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return again, err
		}
	}
	return again, projectFiles(root, ownedFiles(volume, files), fsGroup(pod))
}
