// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

// setupEmptyDir makes an emptyDir. A separate file marks it as complete. After a crash, an incomplete directory is made again, and a complete
// directory stays with the files of containers.
func (v *Volumes) setupEmptyDir(pod *corev1.Pod, volume *corev1.Volume) error {
	memory := onMemory(volume)
	dir := v.volumeDir(pod.UID, volume.Name, memory)
	marks, err := v.openMarks(pod.UID)
	if err != nil {
		return err
	}
	defer marks.Close()
	if _, err := marks.Lstat(volume.Name); err == nil && v.isStanding(dir, memory) {
		return nil
	}
	var limit int64
	if e := volume.EmptyDir; e != nil && e.SizeLimit != nil {
		limit = e.SizeLimit.Value()
	}
	if err := v.makeDirectory(pod, volume.Name, memory, limit); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if e := volume.EmptyDir; e != nil && e.Mode != nil {
		if err := root.Chmod(".", podspec.Mode(*e.Mode)); err != nil {
			return err
		}
	}
	if err := giveTo(root, ".", fsGroup(pod), false); err != nil {
		return err
	}
	return marks.WriteFile(volume.Name, nil, 0o600)
}

// openMarks opens the directory with the marks of a pod's complete emptyDirs.
func (v *Volumes) openMarks(uid types.UID) (*os.Root, error) {
	dir := filepath.Join(v.pods, string(uid), readyDir)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// isStanding reports whether the directory of a volume exists, and is mounted if required. After a reboot, it is not mounted.
func (v *Volumes) isStanding(dir string, memory bool) bool {
	if memory && v.mounts {
		return isMemoryMount(dir)
	}
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir()
}

// makeDirectory makes the directory of a volume, writable for everybody, and mounts a file system in memory there if required.
func (v *Volumes) makeDirectory(pod *corev1.Pod, name string, memory bool, limit int64) error {
	dir := v.volumeDir(pod.UID, name, memory)
	if memory && v.mounts && isMemoryMount(dir) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if info.Mode().Perm() == 0o700 { // the directory is new, or a process crashed here; a container may have set another mode
		if err := os.Chmod(dir, 0o777); err != nil {
			return err
		}
	}
	if !memory || !v.mounts {
		return nil
	}
	if err := mountMemory(dir, v.memorySize(pod, limit)); err != nil {
		return fmt.Errorf("mount a file system in memory: %w", err)
	}
	return nil
}

// memorySize returns the size of a file system in memory: the memory of the pod, or else of the node, or the volume's own limit if that is less. 0
// means unknown.
func (v *Volumes) memorySize(pod *corev1.Pod, limit int64) int64 {
	var size int64
	if v.cfg.Allocatable != nil {
		allocatable := v.cfg.Allocatable()
		size = allocatable.Memory().Value()
	}
	for _, other := range []int64{memoryLimit(pod), limit} {
		if other > 0 && (size == 0 || other < size) {
			size = other
		}
	}
	return size
}
